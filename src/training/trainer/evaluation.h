// Loss and accuracy on a data set.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "training/trainer/training_observer.h"

namespace tamis::training {

class Model;
struct Dataset;

struct Evaluation {
  double loss = 0.0;  // mean cross-entropy
  double accuracy = 0.0;
};

// Puts the model into evaluation mode. `flips`: the logits are the mean of those of the image and
// of its mirror image. Empty if `stop` asked to stop. Requires: the data set is not empty.
std::optional<Evaluation> evaluate(Model& model, const Dataset& data, bool flips,
                                   const StopRequest& stop);

// The loss of each of these samples, with no random change of the images. Puts the model into
// evaluation mode. Empty if `stop` asked to stop.
std::optional<std::vector<float>> evaluate_samples(Model& model, const Dataset& data,
                                                   std::span<const std::uint32_t> samples,
                                                   double label_smoothing, const StopRequest& stop);

}  // namespace tamis::training
