// Scores of static methods: measured once, on a model that was trained for a few epochs on all
// samples, before the run begins from scratch on the subset that they choose.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tamis/bitmap.h"
#include "training/trainer/run_config.h"
#include "training/trainer/training_observer.h"

namespace tamis::training {

class Model;
struct Dataset;

// True if the method's scores are to be measured before the run.
bool is_static(const Method& method);

// Trains a model as the run on the full data would in its first score_epochs epochs, and scores
// every sample: the higher, the more worth keeping. Empty if `stop` asked to stop.
//   el2n        || softmax(z) - onehot(y) || (Paul et al.)
//   grand       the norm of the gradient of the sample's loss by all parameters (Paul et al.)
//   influence   1 for samples to keep, 0 for those to remove, see choose_by_influence()
//   forgetting  how often the sample was right at one visit and wrong at the next; one that was
//               never right has been forgotten more often than any other (Toneva et al.)
std::optional<std::vector<float>> measure_static_scores(const RunConfig& config,
                                                        const Dataset& data,
                                                        const StopRequest& stop);

// The parts, for all samples of the data set and without random changes of the images.
std::vector<float> measure_el2n(Model& model, const Dataset& data);
std::vector<float> measure_grand(const Model& model, const RunConfig& config, const Dataset& data);

// The influence of each sample on the weights of the last layer: H^-1 g / N, where g is the
// gradient of the sample's loss and H the Hessian of the mean loss plus `damping` on its diagonal,
// both by the last layer alone, and solved exactly. One row per sample.
struct Influences {
  std::vector<float> values;
  std::size_t dimension = 0;
};
Influences measure_influences(Model& model, const Dataset& data, double damping);

}  // namespace tamis::training
