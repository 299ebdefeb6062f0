// What is counted per cell of scores, in whole numbers: the totals of parts of the data, added up
// number by number in any order, are the totals of all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/grouping/interval_partition.h"
#include "core/grouping/score_cells.h"
#include "tamis/bitmap.h"

namespace tamis::detail {

struct CellSums {
  std::uint64_t count = 0;
  std::uint64_t offsets = 0;       // of the keys from the cell's first key
  std::uint64_t squares_low = 0;   // of the squared offsets: the lower 32 bits of the terms
  std::uint64_t squares_high = 0;  // and the upper bits

  void add_squares(std::uint64_t squares) {
    squares_low += squares & 0xFFFFFFFFU;
    squares_high += squares >> 32U;
  }
};

// Totals per cell of a map without split cells; only the count for the cell outside the regions.
std::vector<CellSums> sum_cells(std::span<const float> scores, const Bitmap& members,
                                const CellMap& map);

// Totals, smallest and largest key of the cells numbered first_cell and up: the parts of cells that
// were split after the map had that size. Requires: there are such cells.
struct PartSums {
  std::vector<CellSums> sums;
  std::vector<ScoreKey> lows;
  std::vector<ScoreKey> highs;
};
PartSums sum_parts(std::span<const float> scores, const Bitmap& members, const CellMap& map,
                   std::size_t first_cell);

// Exact but for the last rounding; the squares are 0 if and only if all scores are equal.
// Requires: sums.count > 0.
Moments moments_of(const CellMap::Cell& cell, const CellSums& sums);

}  // namespace tamis::detail
