// Groups of an optimal k-means in one dimension are intervals, so only the G - 1 cuts have to be
// found. The scores are first seen through cells (score_cells.h), the cells through a few hundred
// blocks. best_partition finds the best cuts between blocks and where better ones can be at all;
// there the blocks are divided, down to single cells, then the cells, by counting their scores
// again, until what could still be gained is negligible. Up to kSortedCount scores every cell is
// one value, and nothing can be gained.
#include "detail/kmeans_1d.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "detail/cell_sums.h"
#include "detail/check.h"
#include "detail/interval_partition.h"
#include "detail/score_cells.h"

namespace winnow::detail {

namespace {

constexpr std::size_t kSortedCount = 65536;
// Shares of the sum of squares that may be left to gain: at the end, and before cells are split.
constexpr double kTolerance = 1e-6;
constexpr double kNegligible = 1e-9;
// Parts that cells are split into at a time, and positions of cuts considered at a time.
constexpr std::size_t kMaxParts = 4096;
constexpr std::size_t kMaxPositions = std::size_t{1} << 17U;

struct Cell {
  Moments moments;
  float low = 0.0F;
  float high = 0.0F;
  bool bounded = true;       // low and high are scores of the cell, not only bounds
  std::uint32_t number = 0;  // in the CellMap
};

// By digits of 11 bits, the lowest first.
void sort_keys(std::vector<ScoreKey>& keys) {
  constexpr unsigned kDigitBits = 11;
  std::vector<ScoreKey> sorted(keys.size());
  for (unsigned shift = 0; shift < 32; shift += kDigitBits) {
    const auto digit = [shift](ScoreKey key) {
      const std::uint32_t bits = static_cast<std::uint32_t>(key) ^ 0x80000000U;
      return (bits >> shift) & ((1U << kDigitBits) - 1);
    };
    std::array<std::uint32_t, (1U << kDigitBits) + 1> begins{};
    for (const ScoreKey key : keys) ++begins[digit(key) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const ScoreKey key : keys) sorted[begins[digit(key)]++] = key;
    keys.swap(sorted);
  }
}

std::vector<Cell> sorted_cells(std::span<const float> scores, const Bitmap& members) {
  std::vector<ScoreKey> keys;
  keys.reserve(members.count());
  for (std::size_t w = 0; w < members.words().size(); ++w) {
    for (std::uint64_t bits = members.words()[w]; bits != 0; bits &= bits - 1) {
      keys.push_back(key_of(scores[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]));
    }
  }
  sort_keys(keys);
  std::vector<Cell> cells;
  cells.reserve(keys.size());
  for (const ScoreKey key : keys) {
    const float score = score_of(key);
    if (cells.empty() || cells.back().low != score) {
      cells.push_back({.moments = {.count = 0.0, .base = score}, .low = score, .high = score});
    }
    cells.back().moments.count += 1.0;
  }
  return cells;
}

// Cells of scores that are counted, not kept.
class CountedScores {
 public:
  CountedScores(std::span<const float> scores, const Bitmap& members)
      : scores_(scores), members_(members), map_(fit_cells(scores, members, false)) {}

  std::vector<Cell> cells() {
    std::vector<CellSums> sums = sum_cells(scores_, members_, map_);
    if (sums[map_.outside()].count > 0) {
      map_ = fit_cells(scores_, members_, true);
      sums = sum_cells(scores_, members_, map_);
    }
    std::vector<Cell> cells;
    cells.reserve(sums.size());
    for (std::size_t c = 0; c < sums.size(); ++c) {
      if (sums[c].count > 0) cells.push_back(unbounded_cell(c, sums[c]));
    }
    return cells;
  }

  // Replaces each cell by those of its 2^log2_parts parts that are not empty; -1 leaves it whole.
  // Returns the new position of the first part of each old cell, and of the end.
  std::vector<std::size_t> split(std::vector<Cell>& cells, std::span<const int> log2_parts) {
    const std::size_t first_part = map_.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (log2_parts[i] < 0) continue;
      const unsigned most = map_[cells[i].number].log2_size;
      map_.split(cells[i].number, std::min(most, static_cast<unsigned>(log2_parts[i])));
    }
    const PartSums parts = sum_parts(scores_, members_, map_, first_part);

    std::vector<Cell> finer;
    finer.reserve(cells.size() + parts.sums.size());
    std::vector<std::size_t> positions;
    positions.reserve(cells.size() + 1);
    for (const Cell& cell : cells) {
      positions.push_back(finer.size());
      const CellMap::Cell& place = map_[cell.number];
      if (place.parts == 0) {
        finer.push_back(cell);
        continue;
      }
      const std::size_t num_parts = std::size_t{1}
                                    << (place.log2_size - map_[place.parts].log2_size);
      for (std::size_t c = place.parts; c < place.parts + num_parts; ++c) {
        const std::size_t part = c - first_part;
        if (parts.sums[part].count == 0) continue;
        finer.push_back({.moments = moments_of(map_[c], parts.sums[part]),
                         .low = score_of(parts.lows[part]),
                         .high = score_of(parts.highs[part]),
                         .bounded = true,
                         .number = static_cast<std::uint32_t>(c)});
      }
    }
    positions.push_back(finer.size());
    cells = std::move(finer);
    return positions;
  }

 private:
  Cell unbounded_cell(std::size_t number, const CellSums& sums) const {
    const CellMap::Cell& place = map_[number];
    Cell cell{.moments = moments_of(place, sums), .number = static_cast<std::uint32_t>(number)};
    if (cell.moments.squares == 0.0) {
      const auto offset = static_cast<ScoreKey>(sums.offsets / sums.count);
      cell.low = cell.high = score_of(place.first + offset);
    } else {
      cell.low = score_of(place.first);
      cell.high = score_of(place.first + static_cast<ScoreKey>((1U << place.log2_size) - 1));
      cell.bounded = false;
    }
    return cell;
  }

  std::span<const float> scores_;
  const Bitmap& members_;
  CellMap map_;
};

// Enough blocks for a bound that rules out most positions, few enough to try them all.
std::size_t coarse_blocks(std::size_t num_groups) {
  return std::clamp<std::size_t>(48 * num_groups, 256, 2048);
}

Block block_of(std::span<const Cell> cells) {
  Moments moments = cells.front().moments;
  for (const Cell& cell : cells.subspan(1)) moments = merge(moments, cell.moments);
  return {.moments = moments, .low = cells.front().low, .high = cells.back().high};
}

// Begins of num_blocks blocks, and the end, so that their squares are roughly equal: in stretches
// of n scores and width w the number of blocks is proportional to the cube root of n w^2.
std::vector<std::size_t> even_blocks(std::span<const Cell> cells, std::size_t num_blocks) {
  constexpr std::size_t kStretch = 16;
  std::vector<double> shares{0.0};
  for (std::size_t begin = 0; begin < cells.size(); begin += kStretch) {
    const auto stretch = cells.subspan(begin, std::min(kStretch, cells.size() - begin));
    double count = 0.0;
    for (const Cell& cell : stretch) count += cell.moments.count;
    const double width = double{stretch.back().high} - double{stretch.front().low};
    shares.push_back(shares.back() + std::cbrt(count * width * width));
  }
  std::vector<std::size_t> starts{0};
  std::size_t s = 0;
  for (std::size_t b = 1; b < num_blocks; ++b) {
    const double share = shares.back() * static_cast<double>(b) / static_cast<double>(num_blocks);
    while (s + 2 < shares.size() && shares[s + 1] < share) ++s;
    const double part = (share - shares[s]) / (shares[s + 1] - shares[s]);
    const std::size_t start =
        s * kStretch + static_cast<std::size_t>(part * static_cast<double>(kStretch));
    if (start > starts.back() && start < cells.size()) starts.push_back(start);
  }
  starts.push_back(cells.size());
  return starts;
}

class Search {
 public:
  Search(std::vector<Cell> cells, std::size_t num_groups)
      : cells_(std::move(cells)), num_groups_(num_groups) {
    starts_ = even_blocks(cells_, coarse_blocks(num_groups));
    const std::size_t num_blocks = starts_.size() - 1;
    for (std::size_t b = 0; b < num_blocks; ++b) blocks_.push_back(block_of(cells_in(b)));
    windows_.assign(num_groups + 1, {.first = 0, .last = num_blocks});
    windows_.front() = {.first = 0, .last = 0};
    windows_.back() = {.first = num_blocks, .last = num_blocks};
  }

  // The best partition of the scores in `counted`; without it the cells must be single values.
  Kmeans1d run(CountedScores* counted) {
    for (;;) {
      partition_ = best_partition(blocks_, windows_);
      windows_ = confined_windows();
      const double negligible = counted != nullptr ? kNegligible * partition_.cost : 0.0;
      if (partition_.max_excess <= negligible || !can_divide_blocks()) {
        const std::vector<std::size_t> cuts = cell_cuts();
        if (counted == nullptr ||
            (partition_.max_excess <= kTolerance * partition_.cost && is_bounded(cuts))) {
          return groups(cuts);
        }
        split_cells(*counted, cuts);
      }
      divide_blocks();
    }
  }

 private:
  std::span<const Cell> cells_in(std::size_t block) const {
    return std::span(cells_).subspan(starts_[block], starts_[block + 1] - starts_[block]);
  }

  // With very many groups the windows are too many positions to try. Then better cuts are only
  // looked for near the best ones so far, and the excess holds among those.
  std::vector<Window> confined_windows() const {
    std::vector<Window> windows = partition_.windows;
    std::size_t num_positions = 0;
    for (const Window& window : windows) num_positions += window.last - window.first;
    if (num_positions <= kMaxPositions) return windows;
    const std::size_t reach = kMaxPositions / (2 * num_groups_) + 1;
    for (std::size_t j = 0; j < windows.size(); ++j) {
      const std::size_t cut = partition_.cuts[j];
      windows[j].first = std::max(windows[j].first, cut - std::min(cut, reach));
      windows[j].last = std::min(windows[j].last, cut + reach);
    }
    return windows;
  }

  // The number of parts for each block so that the excess of all parts is about equal: it falls
  // with the square of the number.
  std::vector<double> wanted_parts(double total) const {
    std::vector<double> parts;
    double sum = 0.0;
    for (const double excess : partition_.block_excess) {
      parts.push_back(std::sqrt(excess));
      sum += parts.back();
    }
    for (double& number : parts) number = sum > 0.0 ? number / sum * total : 0.0;
    return parts;
  }

  double wanted_blocks() const {
    std::size_t num_candidates = 0;
    for (const double excess : partition_.block_excess) num_candidates += excess > 0.0 ? 1 : 0;
    return static_cast<double>(std::max(2 * num_candidates, coarse_blocks(num_groups_)));
  }

  // Whether dividing blocks helps, or whether most of the excess is in single cells.
  bool can_divide_blocks() const {
    const std::vector<double> wanted = wanted_parts(wanted_blocks());
    double in_cells = 0.0;
    double in_blocks = 0.0;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (wanted[b] > 1.0) (cells_in(b).size() > 1 ? in_blocks : in_cells) += wanted[b];
    }
    return in_blocks > 0.25 * in_cells;
  }

  // Divides the blocks that better cuts might go through; joins those outside all windows.
  void divide_blocks() {
    std::vector<bool> is_inside(blocks_.size(), false);
    std::vector<bool> is_end(blocks_.size() + 1, false);
    for (const Window& window : windows_) {
      is_end[window.first] = is_end[window.last] = true;
      for (std::size_t b = window.first; b < window.last; ++b) is_inside[b] = true;
    }
    const std::vector<double> wanted = wanted_parts(wanted_blocks());

    std::vector<Block> blocks;
    std::vector<std::size_t> starts;
    std::vector<std::size_t> positions;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const bool joined = b > 0 && !is_inside[b] && !is_inside[b - 1] && !is_end[b];
      if (joined) {
        blocks.back().moments = merge(blocks.back().moments, blocks_[b].moments);
        blocks.back().high = blocks_[b].high;
        positions.push_back(blocks.size());
        continue;
      }
      positions.push_back(blocks.size());
      const std::span<const Cell> cells = cells_in(b);
      const std::size_t parts =
          std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(wanted[b])), 1, cells.size());
      if (parts == 1) {
        blocks.push_back(blocks_[b]);
        starts.push_back(starts_[b]);
        continue;
      }
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t begin = part * cells.size() / parts;
        const std::size_t end = (part + 1) * cells.size() / parts;
        blocks.push_back(block_of(cells.subspan(begin, end - begin)));
        starts.push_back(starts_[b] + begin);
      }
    }
    positions.push_back(blocks.size());
    starts.push_back(cells_.size());
    for (Window& window : windows_) {
      window = {.first = positions[window.first], .last = positions[window.last]};
    }
    blocks_ = std::move(blocks);
    starts_ = std::move(starts);
  }

  // Where the groups begin, in cells, and the end.
  std::vector<std::size_t> cell_cuts() const {
    std::vector<std::size_t> cuts;
    for (const std::size_t cut : partition_.cuts) {
      if (cuts.empty() || starts_[cut] != cuts.back()) cuts.push_back(starts_[cut]);
    }
    // Groups can only be missing where another cut would gain less than the rounding.
    for (std::size_t c = 1; c < cells_.size() && cuts.size() <= num_groups_; ++c) {
      const auto place = std::lower_bound(cuts.begin(), cuts.end(), c);
      if (*place != c) cuts.insert(place, c);
    }
    return cuts;
  }

  bool is_bounded(std::span<const std::size_t> cuts) const {
    return std::all_of(cuts.begin(), cuts.end(), [&](std::size_t cut) {
      return (cut == 0 || cells_[cut - 1].bounded) && (cut == cells_.size() || cells_[cut].bounded);
    });
  }

  void split_cells(CountedScores& counted, std::span<const std::size_t> cuts) {
    std::vector<int> log2_parts(cells_.size(), -1);
    const auto bound = [&](std::size_t position) {
      if (position > 0 && !cells_[position - 1].bounded) log2_parts[position - 1] = 0;
      if (position < cells_.size() && !cells_[position].bounded) log2_parts[position] = 0;
    };
    for (const std::size_t cut : cuts) bound(cut);
    for (const Window& window : windows_) {
      bound(starts_[window.first]);
      bound(starts_[window.last]);
    }
    const std::vector<double> wanted =
        wanted_parts(static_cast<double>(std::max(kMaxParts, 16 * num_groups_)));
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (wanted[b] > 0.0 && cells_in(b).size() == 1) {
        log2_parts[starts_[b]] = std::max(1, static_cast<int>(std::lround(std::log2(wanted[b]))));
      }
    }
    const std::vector<std::size_t> positions = counted.split(cells_, log2_parts);
    for (std::size_t& start : starts_) start = positions[start];
  }

  Kmeans1d groups(std::span<const std::size_t> cuts) const {
    Kmeans1d result;
    for (std::size_t j = 0; j + 1 < cuts.size(); ++j) {
      const std::span<const Cell> cells = std::span(cells_).subspan(cuts[j], cuts[j + 1] - cuts[j]);
      const Moments moments = block_of(cells).moments;
      result.groups.push_back({.size = static_cast<std::size_t>(moments.count),
                               .low = cells.front().low,
                               .high = cells.back().high,
                               .center = moments.mean()});
      result.within_group_sum_of_squares += moments.squares;
    }
    return result;
  }

  std::vector<Cell> cells_;
  std::size_t num_groups_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> starts_;  // first cell of each block, and the end
  std::vector<Window> windows_;
  IntervalPartition partition_;
};

}  // namespace

Kmeans1d kmeans_1d(std::span<const float> scores, const Bitmap& members, std::size_t num_groups) {
  require(num_groups >= 1, "kmeans_1d", "num_groups", "at least 1", num_groups);
  require(members.size() == scores.size(), "kmeans_1d", "members", "as many as the scores",
          members.size());
  const std::size_t count = members.count();
  if (count == 0) return {};
  if (count <= kSortedCount) return Search(sorted_cells(scores, members), num_groups).run(nullptr);
  CountedScores counted(scores, members);
  return Search(counted.cells(), num_groups).run(&counted);
}

}  // namespace winnow::detail
