// InfoBatch: prunes samples that score below the mean and rescales the ones of them that stay.
#pragma once

#include <memory>

#include "tamis/policy.h"

namespace tamis {

struct InfoBatchOptions {
  // Fraction of the samples below the mean that is removed, in [0, 0.9].
  double prune_ratio = 0.5;
};

// Of the samples below the mean, floor((1 - prune_ratio) n) stay, chosen uniformly, with weight
// 1 / (1 - prune_ratio), so that the expected gradient is that of the full data. All others stay
// with weight 1.
std::unique_ptr<Policy> make_infobatch(const InfoBatchOptions& options = {});

}  // namespace tamis
