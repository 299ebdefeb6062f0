// The loss of one training step: what to differentiate, and what the score gets to see.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>

#include "tamis/epoch_plan.h"

namespace tamis::training {

struct StepLossOptions {
  double label_smoothing = 0.0;
  // True: one loss per sample, each with its own weight. False: the mean loss of the batch, times
  // the mean weight; all that training code without access to single losses can do.
  bool per_sample = false;
  // True: StepLoss::losses is there even so. The objective stays as it is.
  bool with_losses = false;
};

struct StepLoss {
  torch::Tensor objective;  // call backward on this
  torch::Tensor losses;     // one per sample, without weights or gradient; undefined if not known
  double mean_loss = 0.0;   // without weights
  double prune_seconds = 0.0;  // spent on weights

  std::span<const float> sample_losses() const;
};

// Cross-entropy of one batch of the plan.
StepLoss make_step_loss(const torch::Tensor& logits, const torch::Tensor& labels,
                        const EpochPlan& plan, std::span<const std::uint32_t> indices,
                        const StepLossOptions& options);

}  // namespace tamis::training
