// Per-sample gradients: what each sample of a batch alone would do to the parameters.
#pragma once

#include <torch/types.h>

#include <vector>

#include "training/data/batch.h"

namespace tamis::training {

class Model;

// For every sample of the batch the norm of its loss's gradient by all trained parameters, in one
// forward and one backward pass: torch's vmap gives each sample weights of its own. In evaluation
// mode, where batch norm does not couple the samples. Requires: the model computes in float32 and
// without channels last, which vmap cannot do. Throws std::logic_error if the model has parameters
// in other layers than convolutions, batch norms and linear ones.
std::vector<float> gradient_norms(Model& model, const Batch& batch, double label_smoothing);

}  // namespace tamis::training
