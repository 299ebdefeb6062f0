// The optimiser and the learning rate, which follows the progress of the run.
#pragma once

#include <torch/optim/optimizer.h>

#include <map>
#include <memory>
#include <vector>

#include "training/trainer/run_config.h"

namespace tamis::training {

class Model;

// Parameters by the factor of their learning rate.
using ParameterGroups = std::map<double, std::vector<torch::Tensor>>;
ParameterGroups parameter_groups(const Model& model);

// SGD with Nesterov momentum (plain if momentum is 0), or AdamW with betas momentum and 0.999.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const ParameterGroups& groups,
                                                        const TrainingConfig& config);

// Learning rate at `progress` in [0, 1], a share of the run and not of a number of steps: a run
// that prunes goes through the same learning rates as one that does not.
//   one-cycle: from peak/25 up to the peak in the first `warmup` of the run, then down to
//              peak/250000, both along half a cosine (Smith and Topin; the constants are PyTorch's)
//   cosine:    linearly up to the peak in the first `warmup`, then down to 0 along half a cosine
//   constant:  the peak
double learning_rate_at(const TrainingConfig& config, double progress);

// Times its factor for every group. Requires: make_optimizer() made it for these groups.
void set_learning_rate(torch::optim::Optimizer& optimizer, const ParameterGroups& groups,
                       double learning_rate);

}  // namespace tamis::training
