// The best groups of scores that are known by cells, which can be split where it matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/grouping/interval_partition.h"

namespace tamis::detail {

struct ScoreCell {
  Moments moments;
  float low = 0.0F;
  float high = 0.0F;
  bool is_bounded = true;    // low and high are scores of the cell, not only bounds
  std::uint32_t number = 0;  // for whoever splits it
};

// Replaces each cell by those of its 2^log2_parts parts that are not empty, all of them bounded;
// -1 leaves it as it is, and the number of parts may be limited. Returns the new position of the
// first part of each old cell, and of the end.
using SplitCells = std::function<std::vector<std::size_t>(std::vector<ScoreCell>& cells,
                                                          std::span<const int> log2_parts)>;

struct CellGroups {
  std::vector<ScoreCell> cells;
  // Group j is cells [cuts[j], cuts[j + 1]). The cells at both ends are bounded.
  std::vector<std::size_t> cuts;
};

// Groups of the least sum of squared deviations from the group's mean; as many as wanted, or one
// per value if there are fewer. Without `split` all cells must be single values and the sum is the
// least possible up to rounding; else it is at most 1e-6 above it, relative to the sum, if there
// are at most some 60 groups. Requires: cells and groups not empty, cells in order.
CellGroups best_cell_groups(std::vector<ScoreCell> cells, std::size_t num_groups,
                            const SplitCells& split);

}  // namespace tamis::detail
