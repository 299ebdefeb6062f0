// The prune_ratio with which a policy leaves out a wanted number of samples.
#pragma once

#include <cstdint>
#include <functional>

#include "tamis/score_view.h"
#include "tamis/selection.h"

namespace tamis::detail {

struct RatioChoice {
  Selection selection;
  double prune_ratio = 0.0;
  std::uint64_t least_pruned = 0;  // with ratio 0
  std::uint64_t most_pruned = 0;   // with max_ratio
};

// Looks in [0, max_ratio] for the ratio whose selection, on all ranks, leaves out nearest to
// `wanted` samples. `select` is called three times where the number grows in proportion to the
// ratio, and a few times more where it does not. Collective.
RatioChoice choose_ratio(const ScoreView& scores, double wanted, double max_ratio,
                         const std::function<Selection(double)>& select);

}  // namespace tamis::detail
