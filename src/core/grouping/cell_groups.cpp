// The cells are first seen through a few hundred blocks. best_partition finds the best cuts between
// blocks and where better ones can be at all; there the blocks are divided, down to single cells,
// then the cells are split, until what could still be gained is negligible.
#include "core/grouping/cell_groups.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tamis::detail {

namespace {

// Shares of the sum of squares that may be left to gain: at the end, and before cells are split.
constexpr double kTolerance = 1e-6;
constexpr double kNegligible = 1e-9;
// Parts that cells are split into at a time, and positions of cuts considered at a time.
constexpr std::size_t kMaxParts = 4096;
constexpr std::size_t kMaxPositions = std::size_t{1} << 17U;

// Enough blocks for a bound that rules out most positions, few enough to try them all.
std::size_t coarse_blocks(std::size_t num_groups) {
  return std::clamp<std::size_t>(48 * num_groups, 256, 2048);
}

Block block_of(std::span<const ScoreCell> cells) {
  Moments moments = cells.front().moments;
  for (const ScoreCell& cell : cells.subspan(1)) moments = merge(moments, cell.moments);
  return {.moments = moments, .low = cells.front().low, .high = cells.back().high};
}

// Begins of num_blocks blocks, and the end, so that their squares are roughly equal: in stretches
// of n scores and width w the number of blocks is proportional to the cube root of n w^2.
std::vector<std::size_t> even_blocks(std::span<const ScoreCell> cells, std::size_t num_blocks) {
  constexpr std::size_t kStretch = 16;
  std::vector<double> shares{0.0};
  for (std::size_t begin = 0; begin < cells.size(); begin += kStretch) {
    const auto stretch = cells.subspan(begin, std::min(kStretch, cells.size() - begin));
    double count = 0.0;
    for (const ScoreCell& cell : stretch) count += cell.moments.count;
    const double width = double{stretch.back().high} - double{stretch.front().low};
    shares.push_back(shares.back() + std::cbrt(count * width * width));
  }
  std::vector<std::size_t> starts{0};
  std::size_t s = 0;
  if (shares.back() == 0.0) num_blocks = 1;
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
  Search(std::vector<ScoreCell> cells, std::size_t num_groups)
      : cells_(std::move(cells)), num_groups_(num_groups) {
    starts_ = even_blocks(cells_, coarse_blocks(num_groups));
    const std::size_t num_blocks = starts_.size() - 1;
    for (std::size_t b = 0; b < num_blocks; ++b) blocks_.push_back(block_of(cells_in(b)));
    windows_.assign(num_groups + 1, {.first = 0, .last = num_blocks});
    windows_.front() = {.first = 0, .last = 0};
    windows_.back() = {.first = num_blocks, .last = num_blocks};
  }

  CellGroups run(const SplitCells& split) {
    for (;;) {
      partition_ = best_partition(blocks_, windows_);
      confine_windows();
      const double negligible = split ? kNegligible * partition_.cost : 0.0;
      if (partition_.max_excess <= negligible || !can_divide_blocks()) {
        std::vector<std::size_t> cuts = cell_cuts();
        if (partition_.max_excess <= kTolerance * partition_.cost && is_bounded(cuts)) {
          return {.cells = std::move(cells_), .cuts = std::move(cuts)};
        }
        split_cells(split, cuts);
      }
      divide_blocks();
    }
  }

 private:
  std::span<const ScoreCell> cells_in(std::size_t block) const {
    return std::span(cells_).subspan(starts_[block], starts_[block + 1] - starts_[block]);
  }

  // With very many groups the windows are too many positions to try. Then better cuts are only
  // looked for near the best ones so far, and the excess holds among those.
  void confine_windows() {
    windows_ = partition_.windows;
    std::size_t num_positions = 0;
    for (const Window& window : windows_) num_positions += window.last - window.first;
    if (num_positions <= kMaxPositions) return;
    const std::size_t reach = kMaxPositions / (2 * num_groups_) + 1;
    std::vector<double> excess(blocks_.size(), 0.0);
    for (std::size_t j = 0; j < windows_.size(); ++j) {
      const std::size_t cut = partition_.cuts[j];
      Window& window = windows_[j];
      window.first = std::max(window.first, cut - std::min(cut, reach));
      window.last = std::min(window.last, cut + reach);
      for (std::size_t b = window.first; b < window.last; ++b) {
        excess[b] = partition_.block_excess[b];
      }
    }
    partition_.block_excess = std::move(excess);
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
      const std::span<const ScoreCell> cells = cells_in(b);
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
      return (cut == 0 || cells_[cut - 1].is_bounded) &&
             (cut == cells_.size() || cells_[cut].is_bounded);
    });
  }

  void split_cells(const SplitCells& split, std::span<const std::size_t> cuts) {
    std::vector<int> log2_parts(cells_.size(), -1);
    const auto bound = [&](std::size_t position) {
      if (position > 0 && !cells_[position - 1].is_bounded) log2_parts[position - 1] = 0;
      if (position < cells_.size() && !cells_[position].is_bounded) log2_parts[position] = 0;
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
    const std::vector<std::size_t> positions = split(cells_, log2_parts);
    for (std::size_t& start : starts_) start = positions[start];
  }

  std::vector<ScoreCell> cells_;
  std::size_t num_groups_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> starts_;  // first cell of each block, and the end
  std::vector<Window> windows_;
  IntervalPartition partition_;
};

}  // namespace

CellGroups best_cell_groups(std::vector<ScoreCell> cells, std::size_t num_groups,
                            const SplitCells& split) {
  return Search(std::move(cells), num_groups).run(split);
}

}  // namespace tamis::detail
