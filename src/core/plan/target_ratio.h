// The prune_ratio with which a policy leaves out a wanted number of samples.
#pragma once

#include <cstddef>
#include <functional>

#include "tamis/selection.h"

namespace tamis::detail {

struct RatioChoice {
  Selection selection;
  double prune_ratio = 0.0;
  std::size_t least_pruned = 0;  // with ratio 0
  std::size_t most_pruned = 0;   // with max_ratio
};

// Looks in [0, max_ratio] for the ratio whose selection leaves out nearest to `wanted` of
// `num_samples`. `select` is called three times where the number grows in proportion to the ratio,
// and a few times more where it does not.
RatioChoice choose_ratio(std::size_t num_samples, double wanted, double max_ratio,
                         const std::function<Selection(double)>& select);

}  // namespace tamis::detail
