// Trim: leaves out the highest scored samples. For noisy labels, where the hardest samples are the
// wrong ones; the opposite of InfoBatch.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/policy.h"

namespace tamis {

struct TrimOptions {
  // Fraction removed, in [0, 1).
  double prune_ratio = 0.3;
  // Epochs at the start that use everything, so that scores mean something.
  std::size_t warmup_epochs = 5;
};

// From epoch warmup_epochs on, the floor(prune_ratio N) highest scored samples are left out (fewer
// if fewer are scored). Weights stay 1.
std::unique_ptr<Policy> make_trim(const TrimOptions& options = {});

}  // namespace tamis
