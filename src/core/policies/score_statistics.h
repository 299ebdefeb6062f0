// One pass over the scores: how many there are, and their mean.
#pragma once

#include <cstddef>
#include <span>

namespace tamis::detail {

struct ScoreStatistics {
  std::size_t num_scored = 0;
  double mean = 0.0;  // of the scored; never below all of them or above
};

// Unscored samples (NaN) do not count. The result does not depend on the instruction set.
ScoreStatistics score_statistics(std::span<const float> scores);

}  // namespace tamis::detail
