// Optimal k-means in one dimension: groups are intervals of the sorted scores.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "winnow/bitmap.h"
#include "winnow/selection.h"

namespace winnow::detail {

struct Kmeans1d {
  // From low to high; never empty groups, fewer than asked for if there are fewer distinct scores.
  std::vector<ScoreGroup> groups;
  double within_group_sum_of_squares = 0.0;
};

// Groups the scores whose bit in `members` is set. Every member is a finite number. The within-group
// sum of squares is at most 1e-5 (relative) above the optimum, and equal to it up to rounding for
// small inputs. Group j holds the members with groups[j].low <= score <= groups[j].high.
Kmeans1d kmeans_1d(std::span<const float> scores, const Bitmap& members, std::size_t num_groups);

}  // namespace winnow::detail
