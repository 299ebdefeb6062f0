// The loss of one training step: what to differentiate, and what the score gets to see.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <span>

#include "tamis/epoch_plan.h"

namespace tamis::training {

struct StepLossOptions {
  double label_smoothing = 0.0;
  // True: every loss has its own weight. False: the mean loss of the batch, times the mean weight;
  // all that training code without access to single losses can do.
  bool per_sample = false;
};

struct StepLoss {
  torch::Tensor objective;     // call backward on this
  torch::Tensor losses;        // one per sample, float, without weights or gradient
  double mean_loss = 0.0;      // of these
  double prune_seconds = 0.0;  // spent on weights

  std::span<const float> sample_losses() const;
};

// Cross-entropy of samples [begin, begin + labels) of the plan.
StepLoss make_step_loss(const torch::Tensor& logits, const torch::Tensor& labels,
                        const EpochPlan& plan, std::size_t begin, const StepLossOptions& options);

}  // namespace tamis::training
