// Cells of scores: a histogram's bins, fitted to a sample, that can be split where it matters.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/score_key.h"
#include "tamis/bitmap.h"

namespace tamis::detail {

inline float score_of(ScoreKey key) {
  return key < 0 ? -std::bit_cast<float>(-key) : std::bit_cast<float>(key);
}

// The score as a double, also for the keys of infinities.
double value_of(ScoreKey key);

// Distance from the score of the key to that of the next.
double spacing_at(ScoreKey key);

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

  // How a key finds its cell before any split, in steps for loops over many keys.
  struct Grid {
    ScoreKey origin = 0;
    unsigned region_bits = 0;

    std::uint32_t place(ScoreKey key) const {
      return static_cast<std::uint32_t>(key) - static_cast<std::uint32_t>(origin);
    }
    std::uint32_t region(std::uint32_t place) const {
      return std::min(place >> region_bits, std::uint32_t{kNumRegions});
    }
    // `cells`: what regions() has for the region.
    std::uint32_t cell(std::uint32_t place, std::uint32_t cells) const {
      return (cells >> 5U) + ((place & ((1U << region_bits) - 1)) >> (cells & 31U));
    }
  };

  // Region r becomes 2^log2_parts[r] cells. Requires: kNumRegions numbers up to region_bits;
  // region_bits at most kMaxRegionBits; origin a multiple of 2^region_bits.
  CellMap(const Grid& grid, std::span<const std::uint8_t> log2_parts);

  std::size_t size() const { return cells_.size(); }
  const Cell& operator[](std::size_t cell) const { return cells_[cell]; }
  std::size_t outside() const { return outside_; }

  const Grid& grid() const { return grid_; }
  // Per region: number of its first cell * 32 + log2 of the size of its cells.
  std::span<const std::uint32_t> regions() const { return regions_; }

  // Splits a cell into 2^log2_parts equal ones. Requires: not split yet, not more parts than keys.
  void split(std::size_t cell, unsigned log2_parts);

  // The smallest cell that holds the key.
  std::size_t find(ScoreKey key) const {
    const std::uint32_t place = grid_.place(key);
    std::size_t cell = grid_.cell(place, regions_[grid_.region(place)]);
    while (cells_[cell].parts != 0) {
      const std::size_t part = cells_[cell].parts;
      const auto offset = static_cast<std::uint32_t>(key - cells_[cell].first);
      cell = part + (offset >> cells_[part].log2_size);
    }
    return cell;
  }

 private:
  Grid grid_;
  std::size_t outside_ = 0;
  std::vector<std::uint32_t> regions_;
  std::vector<Cell> cells_;
};

// At most 8193 cells for scores like those of a sample of some 10^4 members: narrow where scores
// are dense and where they are far apart, the way an optimal quantizer would lay them. The regions
// cover thrice the range of the sample, or all keys if `all_keys`. Requires: a member.
CellMap fit_cells(std::span<const float> scores, const Bitmap& members, bool all_keys);

// The smallest and the largest key of some members. Of none: first is above last.
struct KeyRange {
  ScoreKey first = 0;
  ScoreKey last = 0;
};
KeyRange key_range(std::span<const float> scores, const Bitmap& members);

// The same in steps that ranks can take together: the regions for keys of a range, how many members
// each of them has (and, last, those outside), and the cells for such numbers.
CellMap::Grid fit_grid(const KeyRange& range, bool all_keys);
std::vector<std::int64_t> count_regions(std::span<const float> scores, const Bitmap& members,
                                        const CellMap::Grid& grid);
CellMap fit_cells(const CellMap::Grid& grid, const KeyRange& range,
                  std::span<const std::int64_t> region_counts, std::size_t max_cells);

}  // namespace tamis::detail
