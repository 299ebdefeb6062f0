// Exact histograms of scores. Every score belongs to one cell; a cell that turns out to matter can
// be split and its scores counted again.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "detail/interval_partition.h"
#include "winnow/bitmap.h"

namespace winnow::detail {

// Finite scores as integers in the same order; -0 and 0 are both 0. Between two multiples of 2^23
// equal steps of the key are equal steps of the score.
using ScoreKey = std::int32_t;

inline ScoreKey key_of(float score) {
  const auto bits = std::bit_cast<std::int32_t>(score);
  const std::int32_t sign = bits >> 31;
  return (bits ^ (sign & 0x7FFFFFFF)) - sign;
}

inline float score_of(ScoreKey key) {
  return key < 0 ? -std::bit_cast<float>(-key) : std::bit_cast<float>(key);
}

// What is counted per cell. Whole numbers, so that the sum over parts of the data, in any order, is
// the same: totals of several processes are added up number by number.
struct CellSums {
  std::uint64_t count = 0;
  std::uint64_t offsets = 0;       // of the keys from the cell's first key
  std::uint64_t squares_low = 0;   // of the squared offsets, the lower 32 bits of each term
  std::uint64_t squares_high = 0;  // and the upper ones

  void add_squares(std::uint64_t squares) {
    squares_low += squares & 0xFFFFFFFFU;
    squares_high += squares >> 32U;
  }
};

// Cells numbered from 0. First kNumRegions regions of equally many keys, each divided into equal
// cells; then one cell for all keys outside the regions; then the parts of split cells.
class CellMap {
 public:
  static constexpr std::size_t kNumRegions = 1024;
  static constexpr unsigned kMaxRegionBits = 22;

  struct Cell {
    ScoreKey first = 0;
    std::uint8_t log2_size = 0;
    std::uint32_t parts = 0;  // number of the first part, 0 if not split
  };

  // The regions have 2^region_bits keys each and begin at `origin`, region r becomes
  // 2^log2_parts[r] cells. Requires: kNumRegions numbers up to region_bits; region_bits at most
  // kMaxRegionBits, with which the regions must be all keys; origin a multiple of 2^region_bits.
  CellMap(ScoreKey origin, unsigned region_bits, std::span<const std::uint8_t> log2_parts);

  std::size_t size() const { return cells_.size(); }
  const Cell& operator[](std::size_t cell) const { return cells_[cell]; }
  std::size_t outside() const { return outside_; }

  // Splits a cell into 2^log2_parts equal ones. Requires: not split yet, not more parts than keys.
  void split(std::size_t cell, unsigned log2_parts);

  // The smallest cell that holds the key.
  std::size_t find(ScoreKey key) const {
    const std::uint32_t place = grid_.place(key);
    const std::uint32_t region = regions_[grid_.region(place)];
    std::size_t cell = grid_.cell(place, region);
    while (cells_[cell].parts != 0) {
      const std::size_t part = cells_[cell].parts;
      const auto offset = static_cast<std::uint32_t>(key - cells_[cell].first);
      cell = part + (offset >> cells_[part].log2_size);
    }
    return cell;
  }

  // How a key finds its cell before any split, in steps for loops over many keys.
  struct Grid {
    ScoreKey origin;
    unsigned region_bits;

    std::uint32_t place(ScoreKey key) const {
      return static_cast<std::uint32_t>(key) - static_cast<std::uint32_t>(origin);
    }
    std::uint32_t region(std::uint32_t place) const {
      return std::min(place >> region_bits, std::uint32_t{kNumRegions});
    }
    // From regions()[region(place)].
    std::uint32_t cell(std::uint32_t place, std::uint32_t region) const {
      return (region >> 5U) + ((place & ((1U << region_bits) - 1)) >> (region & 31U));
    }
  };
  const Grid& grid() const { return grid_; }

  // Per region: number of its first cell * 32 + log2 of the size of its cells.
  std::span<const std::uint32_t> regions() const { return regions_; }

 private:
  Grid grid_;
  std::size_t outside_ = 0;
  std::vector<std::uint32_t> regions_;
  std::vector<Cell> cells_;
};

// Cells for scores like those of a sample of about 2^15 members: narrow where they are dense and
// where they are spread far, the way an optimal quantizer would lay them. The regions cover thrice
// the range of the sample, or all keys if `all_keys`.
CellMap fit_cells(std::span<const float> scores, const Bitmap& members, bool all_keys);

// Totals per cell of a map without split cells; only the count for the cell outside the regions.
std::vector<CellSums> sum_cells(std::span<const float> scores, const Bitmap& members,
                                const CellMap& map);

// Totals, smallest and largest key of the cells numbered first_cell and up: the parts of cells that
// have been split since the map had that size.
struct PartSums {
  std::vector<CellSums> sums;
  std::vector<ScoreKey> lows;
  std::vector<ScoreKey> highs;
};
PartSums sum_parts(std::span<const float> scores, const Bitmap& members, const CellMap& map,
                   std::size_t first_cell);

// Exact up to the last rounding; the squares are 0 exactly if all scores of the cell are equal.
// Requires: sums.count > 0.
Moments moments_of(const CellMap::Cell& cell, const CellSums& sums);

}  // namespace winnow::detail
