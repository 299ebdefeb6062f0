#include "core/grouping/score_cells.h"

#include <array>
#include <cmath>
#include <limits>

namespace tamis::detail {

namespace {

// With 16 bytes per cell the totals stay in the second-level cache.
constexpr std::size_t kMaxCells = 8192;
constexpr std::size_t kSampleCount = 8192;

template <typename Visit>
void for_each_key(std::span<const float> scores, const Bitmap& members, Visit visit) {
  for (std::size_t w = 0; w < members.words().size(); ++w) {
    for (std::uint64_t bits = members.words()[w]; bits != 0; bits &= bits - 1) {
      visit(key_of(scores[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]));
    }
  }
}

// The members of one word in every stretch of words.
std::vector<ScoreKey> sample_keys(std::span<const float> scores, const Bitmap& members) {
  const std::span<const std::uint64_t> words = members.words();
  const std::size_t stretch = std::max<std::size_t>(1, members.count() / kSampleCount);
  std::vector<ScoreKey> keys;
  for (std::size_t begin = 0; begin < words.size(); begin += stretch) {
    const std::size_t end = std::min(words.size(), begin + stretch);
    std::size_t w = begin;
    while (w + 1 < end && words[w] == 0) ++w;
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      keys.push_back(key_of(scores[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]));
    }
  }
  return keys;
}

}  // namespace

CellMap::Grid fit_grid(const KeyRange& range, bool all_keys) {
  constexpr std::int64_t kLowest = std::numeric_limits<ScoreKey>::min();
  const std::int64_t span = std::int64_t{range.last} - range.first + 1;
  unsigned bits = 0;
  while (((3 * span) >> bits) + 1 >= std::int64_t{CellMap::kNumRegions}) ++bits;
  if (all_keys || bits >= CellMap::kMaxRegionBits) {
    return {.origin = static_cast<ScoreKey>(kLowest), .region_bits = CellMap::kMaxRegionBits};
  }
  const std::int64_t origin = std::max(kLowest, range.first - span) >> bits << bits;
  return {.origin = static_cast<ScoreKey>(origin), .region_bits = bits};
}

double value_of(ScoreKey key) {
  const auto magnitude = static_cast<std::uint64_t>(std::abs(std::int64_t{key}));
  constexpr std::uint64_t kBias = 1023 - 127;
  const double value = magnitude < (1U << 23U)
                           ? static_cast<double>(magnitude) * 0x1p-149
                           : std::bit_cast<double>((magnitude << 29U) + (kBias << 52U));
  return key < 0 ? -value : value;
}

double spacing_at(ScoreKey key) {
  const std::int64_t magnitude = key < 0 ? -(std::int64_t{key} + 1) : std::int64_t{key};
  const auto exponent = static_cast<std::uint64_t>(std::max<std::int64_t>(magnitude >> 23, 1));
  return std::bit_cast<double>((exponent + 1023 - 150) << 52U);
}

CellMap::CellMap(const Grid& grid, std::span<const std::uint8_t> log2_parts)
    : grid_(grid), regions_(kNumRegions + 1) {
  std::int64_t first = grid.origin;
  for (std::size_t r = 0; r < kNumRegions; ++r) {
    const auto log2_size = static_cast<std::uint8_t>(grid.region_bits - log2_parts[r]);
    regions_[r] = static_cast<std::uint32_t>(cells_.size() * 32 + log2_size);
    for (std::size_t part = 0; part < std::size_t{1} << log2_parts[r]; ++part) {
      cells_.push_back({.first = static_cast<ScoreKey>(first), .log2_size = log2_size});
      first += std::int64_t{1} << log2_size;
    }
  }
  outside_ = cells_.size();
  regions_[kNumRegions] = static_cast<std::uint32_t>(outside_ * 32 + grid.region_bits);
  cells_.emplace_back();
}

void CellMap::split(std::size_t cell, unsigned log2_parts) {
  cells_[cell].parts = static_cast<std::uint32_t>(cells_.size());
  const auto log2_size = static_cast<std::uint8_t>(cells_[cell].log2_size - log2_parts);
  std::int64_t first = cells_[cell].first;
  for (std::size_t part = 0; part < std::size_t{1} << log2_parts; ++part) {
    cells_.push_back({.first = static_cast<ScoreKey>(first), .log2_size = log2_size});
    first += std::int64_t{1} << log2_size;
  }
}

CellMap fit_cells(std::span<const float> scores, const Bitmap& members, bool all_keys) {
  const std::vector<ScoreKey> sample = sample_keys(scores, members);
  const auto [low, high] = std::minmax_element(sample.begin(), sample.end());
  const KeyRange range{.first = *low, .last = *high};
  const CellMap::Grid grid = fit_grid(range, all_keys);
  std::array<std::int64_t, CellMap::kNumRegions + 1> counts{};
  for (const ScoreKey key : sample) ++counts[grid.region(grid.place(key))];
  return fit_cells(grid, range, counts, kMaxCells);
}

KeyRange key_range(std::span<const float> scores, const Bitmap& members) {
  KeyRange range{.first = std::numeric_limits<ScoreKey>::max(),
                 .last = std::numeric_limits<ScoreKey>::min()};
  for_each_key(scores, members, [&](ScoreKey key) {
    range.first = std::min(range.first, key);
    range.last = std::max(range.last, key);
  });
  return range;
}

std::vector<std::int64_t> count_regions(std::span<const float> scores, const Bitmap& members,
                                        const CellMap::Grid& grid) {
  std::vector<std::int64_t> counts(CellMap::kNumRegions + 1, 0);
  for_each_key(scores, members, [&](ScoreKey key) { ++counts[grid.region(grid.place(key))]; });
  return counts;
}

CellMap fit_cells(const CellMap::Grid& grid, const KeyRange& range,
                  std::span<const std::int64_t> region_counts, std::size_t max_cells) {
  // An optimal quantizer has cells of equal squares, so in a region of n evenly spread scores and
  // width w a number proportional to the cube root of n w^2. Regions next to the sample may hold
  // the most extreme scores; all others get one cell.
  constexpr std::size_t kMargin = 2;
  const std::size_t lowest = grid.region(grid.place(range.first));
  const std::size_t highest = grid.region(grid.place(range.last));
  const std::size_t begin = lowest - std::min(lowest, kMargin);
  const std::size_t end = std::min(highest + 1 + kMargin, CellMap::kNumRegions);
  std::array<double, CellMap::kNumRegions> log2_share{};
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t r = begin; r < end; ++r) {
    const auto first = static_cast<std::int64_t>(r) << grid.region_bits;
    const double spacing = spacing_at(static_cast<ScoreKey>(grid.origin + first));
    log2_share[r] =
        (std::log2(static_cast<double>(region_counts[r]) + 0.5) + 2.0 * std::log2(spacing)) / 3.0;
    most = std::max(most, log2_share[r]);
  }

  // The largest common factor for which the cells are not too many, in steps of 2^(1/4).
  const double max_log2_parts = grid.region_bits;
  std::array<std::uint8_t, CellMap::kNumRegions> log2_parts{};
  bool is_growing = true;
  for (double factor = 0.25; is_growing; factor += 0.25) {
    std::array<std::uint8_t, CellMap::kNumRegions> finer{};
    std::size_t num_cells = CellMap::kNumRegions - (end - begin);
    is_growing = false;
    for (std::size_t r = begin; r < end; ++r) {
      const double wanted = std::floor(log2_share[r] - most + factor);
      finer[r] = static_cast<std::uint8_t>(std::clamp(wanted, 0.0, max_log2_parts));
      num_cells += std::size_t{1} << finer[r];
      is_growing = is_growing || wanted < max_log2_parts;
    }
    if (num_cells > max_cells) break;
    log2_parts = finer;
  }
  return {grid, log2_parts};
}

}  // namespace tamis::detail
