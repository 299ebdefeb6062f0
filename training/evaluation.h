// Loss and accuracy on a data set.
#pragma once

#include <optional>

#include "training/dataset.h"
#include "training/model.h"
#include "training/training_observer.h"

namespace winnow::training {

struct Evaluation {
  double loss = 0.0;  // mean cross-entropy
  double accuracy = 0.0;
};

// Puts the model into evaluation mode. Empty if `stop` asked to stop. Requires: the data set is not
// empty.
std::optional<Evaluation> evaluate(Model& model, const Dataset& data, const StopRequest& stop);

}  // namespace winnow::training
