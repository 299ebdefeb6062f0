// Optimal k-means in one dimension: groups are intervals of the sorted scores.
#pragma once

#include <cstddef>
#include <span>

#include "tamis/bitmap.h"
#include "tamis/score_view.h"

namespace tamis {
class Communicator;
}

namespace tamis::detail {

// Groups the scores whose bit in `members` is set; group j holds the members with groups[j].low <=
// score <= groups[j].high. The within-group sum of squares is the least possible up to rounding for
// at most 65536 members, and at most 1e-6 (relative) above it for more; beyond about 60 groups
// that is usual, not certain. Linear in the number of scores, with memory that does not depend on
// it. Requires: every member is a finite number, num_groups >= 1.
ScoreGroups kmeans_1d(std::span<const float> scores, const Bitmap& members, std::size_t num_groups);

// The same for the members of all ranks, each with its own scores: all get the groups of the whole,
// which do not depend on how it is cut into parts, at most 1e-6 above the least sum of squares.
// Sends less than 512 KiB for up to some 60 groups, however many scores there are.
ScoreGroups kmeans_1d(std::span<const float> scores, const Bitmap& members, std::size_t num_groups,
                      Communicator& communicator);

}  // namespace tamis::detail
