// Groups of an optimal k-means in one dimension are intervals, so only the cuts between them have
// to be found. Up to kSortedCount scores are sorted and every distinct one is a cell. More are
// counted in cells that fit them (score_cells.h), and counted again in parts of those cells that
// best_cell_groups asks for; they are neither copied nor sorted.
#include "core/grouping/kmeans_1d.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "core/grouping/cell_groups.h"
#include "core/grouping/cell_sums.h"
#include "core/grouping/score_cells.h"
#include "tamis/communicator.h"

namespace tamis::detail {

namespace {

constexpr std::size_t kSortedCount = 65536;

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

std::vector<ScoreCell> sorted_cells(std::span<const float> scores, const Bitmap& members) {
  std::vector<ScoreKey> keys;
  keys.reserve(members.count());
  for (std::size_t w = 0; w < members.words().size(); ++w) {
    for (std::uint64_t bits = members.words()[w]; bits != 0; bits &= bits - 1) {
      keys.push_back(key_of(scores[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]));
    }
  }
  sort_keys(keys);
  std::vector<ScoreCell> cells;
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

// Half as many cells as one process would use: the border cells are split anyway.
constexpr std::size_t kMaxCellsOfRanks = 4096;

// The cells for the scores of all ranks. Requires: one of them has a member.
CellMap fit_cells_of_ranks(std::span<const float> scores, const Bitmap& members,
                           Communicator& communicator) {
  const KeyRange ours = key_range(scores, members);
  std::array<std::int64_t, 2> ends = {ours.first, -std::int64_t{ours.last}};
  communicator.all_reduce(ends, Reduction::minimum);
  const KeyRange range{.first = static_cast<ScoreKey>(ends[0]),
                       .last = static_cast<ScoreKey>(-ends[1])};
  const CellMap::Grid grid = fit_grid(range, false);
  std::vector<std::int64_t> counts = count_regions(scores, members, grid);
  communicator.all_reduce(counts);
  return fit_cells(grid, range, counts, kMaxCellsOfRanks);
}

std::vector<CellSums> add_up(std::vector<CellSums> sums, Communicator& communicator) {
  static_assert(sizeof(CellSums) == 4 * sizeof(std::int64_t));
  communicator.all_reduce(std::span(reinterpret_cast<std::int64_t*>(sums.data()), 4 * sums.size()));
  return sums;
}

// Smallest and largest keys of all ranks.
void add_up(PartSums& parts, Communicator& communicator) {
  parts.sums = add_up(std::move(parts.sums), communicator);
  std::vector<std::int64_t> ends(parts.lows.begin(), parts.lows.end());
  for (const ScoreKey high : parts.highs) ends.push_back(-std::int64_t{high});
  communicator.all_reduce(ends, Reduction::minimum);
  for (std::size_t i = 0; i < parts.lows.size(); ++i) {
    parts.lows[i] = static_cast<ScoreKey>(ends[i]);
    parts.highs[i] = static_cast<ScoreKey>(-ends[parts.lows.size() + i]);
  }
}

// Cells of scores that are counted, not kept.
class CountedScores {
 public:
  CountedScores(std::span<const float> scores, const Bitmap& members)
      : scores_(scores), members_(members), map_(fit_cells(scores, members, false)) {}
  // Those of all ranks.
  CountedScores(std::span<const float> scores, const Bitmap& members, Communicator& communicator)
      : scores_(scores),
        members_(members),
        map_(fit_cells_of_ranks(scores, members, communicator)),
        communicator_(&communicator) {}

  std::vector<ScoreCell> cells() {
    std::vector<CellSums> sums = sum_cells(scores_, members_, map_);
    if (communicator_ != nullptr) {
      sums = add_up(std::move(sums), *communicator_);
    } else if (sums[map_.outside()].count > 0) {
      map_ = fit_cells(scores_, members_, true);
      sums = sum_cells(scores_, members_, map_);
    }
    std::vector<ScoreCell> cells;
    cells.reserve(sums.size());
    for (std::size_t c = 0; c < sums.size(); ++c) {
      if (sums[c].count > 0) cells.push_back(unbounded_cell(c, sums[c]));
    }
    return cells;
  }

  // See SplitCells.
  std::vector<std::size_t> split(std::vector<ScoreCell>& cells, std::span<const int> log2_parts) {
    const std::size_t first_part = map_.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (log2_parts[i] < 0) continue;
      const unsigned most = map_[cells[i].number].log2_size;
      map_.split(cells[i].number, std::min(most, static_cast<unsigned>(log2_parts[i])));
    }
    PartSums parts = sum_parts(scores_, members_, map_, first_part);
    if (communicator_ != nullptr) add_up(parts, *communicator_);

    std::vector<ScoreCell> finer;
    finer.reserve(cells.size() + parts.sums.size());
    std::vector<std::size_t> positions;
    positions.reserve(cells.size() + 1);
    for (const ScoreCell& cell : cells) {
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
                         .is_bounded = true,
                         .number = static_cast<std::uint32_t>(c)});
      }
    }
    positions.push_back(finer.size());
    cells = std::move(finer);
    return positions;
  }

 private:
  ScoreCell unbounded_cell(std::size_t number, const CellSums& sums) const {
    const CellMap::Cell& place = map_[number];
    ScoreCell cell{.moments = moments_of(place, sums),
                   .number = static_cast<std::uint32_t>(number)};
    if (cell.moments.squares == 0.0) {
      const auto offset = static_cast<ScoreKey>(sums.offsets / sums.count);
      cell.low = cell.high = score_of(place.first + offset);
    } else {
      cell.low = score_of(place.first);
      cell.high = score_of(place.first + static_cast<ScoreKey>((1U << place.log2_size) - 1));
      cell.is_bounded = false;
    }
    return cell;
  }

  std::span<const float> scores_;
  const Bitmap& members_;
  CellMap map_;
  Communicator* communicator_ = nullptr;  // null: these scores are all there are
};

CellGroups best_groups(CountedScores counted, std::size_t num_groups) {
  return best_cell_groups(counted.cells(), num_groups,
                          [&](std::vector<ScoreCell>& cells, std::span<const int> log2_parts) {
                            return counted.split(cells, log2_parts);
                          });
}

ScoreGroups describe(const CellGroups& found) {
  ScoreGroups result;
  for (std::size_t j = 0; j + 1 < found.cuts.size(); ++j) {
    const auto cells =
        std::span(found.cells).subspan(found.cuts[j], found.cuts[j + 1] - found.cuts[j]);
    Moments moments = cells.front().moments;
    for (const ScoreCell& cell : cells.subspan(1)) moments = merge(moments, cell.moments);
    result.groups.push_back({.size = static_cast<std::size_t>(moments.count),
                             .low = cells.front().low,
                             .high = cells.back().high,
                             .center = moments.mean()});
    result.within_group_sum_of_squares += moments.squares;
  }
  return result;
}

void check_input(std::span<const float> scores, const Bitmap& members, std::size_t num_groups) {
  require(num_groups >= 1, "kmeans_1d", "num_groups", "at least 1", num_groups);
  require(members.size() == scores.size(), "kmeans_1d", "members", "as many as the scores",
          members.size());
}

}  // namespace

ScoreGroups kmeans_1d(std::span<const float> scores, const Bitmap& members,
                      std::size_t num_groups) {
  check_input(scores, members, num_groups);
  const std::size_t count = members.count();
  if (count == 0) return {};
  if (count <= kSortedCount) {
    return describe(best_cell_groups(sorted_cells(scores, members), num_groups, {}));
  }
  return describe(best_groups(CountedScores(scores, members), num_groups));
}

ScoreGroups kmeans_1d(std::span<const float> scores, const Bitmap& members, std::size_t num_groups,
                      Communicator& communicator) {
  check_input(scores, members, num_groups);
  auto count = static_cast<std::int64_t>(members.count());
  communicator.all_reduce(std::span(&count, 1));
  if (count == 0) return {};
  return describe(best_groups(CountedScores(scores, members, communicator), num_groups));
}

}  // namespace tamis::detail
