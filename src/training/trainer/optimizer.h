// The optimiser and the learning rate, which follows the progress of the run.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "training/trainer/run_config.h"

namespace tamis::training {

// SGD with Nesterov momentum (plain if momentum is 0), or AdamW with betas momentum and 0.999.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(std::vector<torch::Tensor> parameters,
                                                        const TrainingConfig& config);

// Learning rate at `progress` in [0, 1], a share of the run and not of a number of steps: a run
// that prunes goes through the same learning rates as one that does not.
//   one-cycle: from peak/25 up to the peak in the first `warmup` of the run, then down to
//              peak/250000, both along half a cosine (Smith and Topin; the constants are PyTorch's)
//   cosine:    linearly up to the peak in the first `warmup`, then down to 0 along half a cosine
//   constant:  the peak
double learning_rate_at(const TrainingConfig& config, double progress);

void set_learning_rate(torch::optim::Optimizer& optimizer, double learning_rate);

}  // namespace tamis::training
