#include "detail/score_cells.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "detail/multiversion.h"

namespace winnow::detail {

namespace {

// Total of all regions; a table of 16 bytes per cell should stay in the second-level cache.
constexpr std::size_t kMaxCells = 8192;
constexpr std::size_t kSampleCount = std::size_t{1} << 15U;

constexpr std::size_t kChunkWords = 16;
constexpr std::size_t kChunk = kChunkWords * 64;

// Totals of at most kFlushCount scores: the offsets in the lower 42 bits of `packed`, the count in
// the others.
struct SmallSums {
  std::uint64_t packed = 0;
  std::uint64_t squares = 0;
};
constexpr unsigned kCountShift = 42;
constexpr std::size_t kFlushCount = std::size_t{1} << 20U;
static_assert(kFlushCount << CellMap::kMaxRegionBits <= std::uint64_t{1} << kCountShift);
static_assert(kFlushCount > kChunk);

// Positions of the set bits of each byte, to pick members eight at a time.
struct BytePositions {
  alignas(32) std::array<std::array<std::int32_t, 8>, 256> table{};
  constexpr BytePositions() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      unsigned n = 0;
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (((byte >> bit) & 1U) != 0) table[byte][n++] = static_cast<std::int32_t>(bit);
      }
    }
  }
};
constexpr BytePositions kBytePositions;

// Writes the members among 64 scores per word, and up to 7 numbers more. Returns their number.
[[gnu::always_inline]] inline std::size_t pick(const float* scores, const std::uint64_t* words,
                                               std::size_t num_words, float* out) {
  std::size_t n = 0;
  for (std::size_t w = 0; w < num_words; ++w) {
    std::uint64_t bits = words[w];
#if defined(__GNUC__) && !defined(__clang__)
    using Eight = std::int32_t __attribute__((vector_size(32)));
    for (std::size_t byte = 0; byte < 8; ++byte, bits >>= 8U) {
      Eight positions;
      Eight values;
      std::memcpy(&positions, kBytePositions.table[bits & 255U].data(), sizeof positions);
      std::memcpy(&values, scores + w * 64 + byte * 8, sizeof values);
      values = __builtin_shuffle(values, positions);
      std::memcpy(out + n, &values, sizeof values);
      n += static_cast<std::size_t>(std::popcount(bits & 255U));
    }
#else
    for (; bits != 0; bits &= bits - 1) {
      out[n++] = scores[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
    }
#endif
  }
  return n;
}

// Scores on the way to their cells. In steps over short arrays, which the compiler vectorizes.
struct Chunk {
  alignas(64) std::array<float, kChunk + 8> scores;
  alignas(64) std::array<ScoreKey, kChunk> keys;
  alignas(64) std::array<std::uint32_t, kChunk> places;
  alignas(64) std::array<std::uint32_t, kChunk> indices;
  alignas(64) std::array<std::uint32_t, kChunk> offsets;
};

WINNOW_MULTIVERSION
std::size_t add_chunk(const float* scores, const std::uint64_t* words, std::size_t num_words,
                      CellMap::Grid grid, const std::uint32_t* regions, Chunk& chunk,
                      SmallSums* sums) {
  const std::size_t n = pick(scores, words, num_words, chunk.scores.data());
  for (std::size_t i = 0; i < n; ++i) {
    chunk.places[i] = grid.place(key_of(chunk.scores[i]));
    chunk.indices[i] = grid.region(chunk.places[i]);
  }
  for (std::size_t i = 0; i < n; ++i) chunk.indices[i] = regions[chunk.indices[i]];
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t region = chunk.indices[i];
    chunk.indices[i] = grid.cell(chunk.places[i], region);
    chunk.offsets[i] = chunk.places[i] & ((1U << (region & 31U)) - 1);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t offset = chunk.offsets[i];
    SmallSums& cell = sums[chunk.indices[i]];
    cell.packed += (std::uint64_t{1} << kCountShift) | offset;
    cell.squares += offset * offset;
  }
  return n;
}

// Marks sections of 2^shift keys; everything outside them falls into the last, unmarked one.
struct KeyFilter {
  ScoreKey first = 0;
  unsigned shift = 0;
  std::vector<std::uint8_t> marks;
};

// Lists the keys of members in marked sections in chunk.keys. Returns their number.
WINNOW_MULTIVERSION
std::size_t filter_chunk(const float* scores, const std::uint64_t* words, std::size_t num_words,
                         ScoreKey first, unsigned shift, const std::uint8_t* marks,
                         std::uint32_t last_mark, Chunk& chunk) {
  const std::size_t n = pick(scores, words, num_words, chunk.scores.data());
  for (std::size_t i = 0; i < n; ++i) {
    chunk.keys[i] = key_of(chunk.scores[i]);
    const std::uint32_t offset =
        static_cast<std::uint32_t>(chunk.keys[i]) - static_cast<std::uint32_t>(first);
    chunk.indices[i] = std::min(offset >> shift, last_mark);
  }
  std::size_t num_marked = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (marks[chunk.indices[i]] != 0) chunk.keys[num_marked++] = chunk.keys[i];
  }
  return num_marked;
}

// Calls use(scores, words, num_words) for all members; the last word is padded where the scores end
// within it.
template <typename Use>
void for_each_chunk(std::span<const float> scores, const Bitmap& members, Use use) {
  const std::span<const std::uint64_t> words = members.words();
  const std::size_t whole = scores.size() / 64;
  for (std::size_t w = 0; w < whole; w += kChunkWords) {
    use(&scores[w * 64], &words[w], std::min(kChunkWords, whole - w));
  }
  if (whole < words.size()) {
    std::array<float, 64> padded{};
    std::copy(scores.begin() + static_cast<std::ptrdiff_t>(whole * 64), scores.end(),
              padded.begin());
    use(padded.data(), &words[whole], 1);
  }
}

std::vector<ScoreKey> sample_keys(std::span<const float> scores, const Bitmap& members) {
  const std::span<const std::uint64_t> words = members.words();
  const std::size_t stride = std::max<std::size_t>(1, members.count() / kSampleCount);
  std::vector<ScoreKey> keys;
  for (std::size_t first = 0; first < words.size(); first += stride) {
    // The first word of each stretch that has members.
    const std::size_t end = std::min(words.size(), first + stride);
    std::size_t w = first;
    while (w < end && words[w] == 0) ++w;
    if (w == end) continue;
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      keys.push_back(key_of(scores[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]));
    }
  }
  return keys;
}

// The score as a double, also for the key after the last finite score.
double value_of(std::int64_t key) {
  const std::int64_t magnitude = std::abs(key);
  const auto exponent = static_cast<int>(magnitude >> 23);
  const auto fraction = static_cast<double>(magnitude & 0x7FFFFF);
  const double value =
      exponent == 0 ? std::ldexp(fraction, -149) : std::ldexp(fraction + 0x1p23, exponent - 150);
  return key < 0 ? -value : value;
}

// Difference of the scores of neighbouring keys in a cell.
double spacing(const CellMap::Cell& cell) {
  return value_of(std::int64_t{cell.first} + 1) - value_of(cell.first);
}

KeyFilter filter_for(const CellMap& map, std::size_t first_cell) {
  constexpr std::uint32_t kMaxMarks = 16384;
  KeyFilter filter;
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  const auto end_of = [&](std::size_t c) {
    return map[c].first + (std::int64_t{1} << map[c].log2_size);
  };
  for (std::size_t c = first_cell; c < map.size(); ++c) {
    begin = std::min(begin, std::int64_t{map[c].first});
    end = std::max(end, end_of(c));
  }
  while (((end - begin) >> filter.shift) >= kMaxMarks) ++filter.shift;
  filter.first = static_cast<ScoreKey>(begin);
  filter.marks.assign(static_cast<std::size_t>((end - 1 - begin) >> filter.shift) + 2, 0);
  for (std::size_t c = first_cell; c < map.size(); ++c) {
    const auto first = static_cast<std::size_t>((map[c].first - begin) >> filter.shift);
    const auto last = static_cast<std::size_t>((end_of(c) - 1 - begin) >> filter.shift);
    std::fill(&filter.marks[first], &filter.marks[last] + 1, std::uint8_t{1});
  }
  return filter;
}

}  // namespace

CellMap::CellMap(ScoreKey origin, unsigned region_bits, std::span<const std::uint8_t> log2_parts)
    : grid_{.origin = origin, .region_bits = region_bits}, regions_(kNumRegions + 1) {
  std::int64_t first = origin;
  for (std::size_t r = 0; r < kNumRegions; ++r) {
    const auto log2_size = static_cast<std::uint8_t>(region_bits - log2_parts[r]);
    regions_[r] = static_cast<std::uint32_t>(cells_.size() * 32 + log2_size);
    for (std::size_t part = 0; part < std::size_t{1} << log2_parts[r]; ++part) {
      cells_.push_back({.first = static_cast<ScoreKey>(first), .log2_size = log2_size});
      first += std::int64_t{1} << log2_size;
    }
  }
  // Shifts everything to offset 0.
  outside_ = cells_.size();
  regions_[kNumRegions] = static_cast<std::uint32_t>(outside_ * 32 + region_bits);
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
  const std::int64_t span = std::int64_t{*high} - *low + 1;
  unsigned bits = all_keys ? CellMap::kMaxRegionBits : 0;
  while (bits < CellMap::kMaxRegionBits &&
         ((3 * span) >> bits) + 1 >= std::int64_t{CellMap::kNumRegions}) {
    ++bits;
  }
  const std::int64_t lowest = std::numeric_limits<ScoreKey>::min();
  const std::int64_t origin =
      bits == CellMap::kMaxRegionBits ? lowest : std::max(lowest, *low - span) >> bits << bits;
  const CellMap::Grid grid{.origin = static_cast<ScoreKey>(origin), .region_bits = bits};

  constexpr std::size_t kMargin = 2;
  std::array<std::uint32_t, CellMap::kNumRegions + 1> counts{};
  for (const ScoreKey key : sample) ++counts[grid.region(grid.place(key))];
  const std::size_t begin = grid.region(grid.place(*low));
  const std::size_t end = grid.region(grid.place(*high)) + 1;

  // An optimal quantizer has cells of equal squares, so in a region of n evenly spread scores and
  // width w a number proportional to the cube root of n w^2. Regions next to the sample may hold
  // the most extreme scores.
  std::array<double, CellMap::kNumRegions> log2_share;
  log2_share.fill(-std::numeric_limits<double>::infinity());
  for (std::size_t r = begin - std::min(begin, kMargin);
       r < std::min(end + kMargin, CellMap::kNumRegions); ++r) {
    const std::int64_t first = origin + (static_cast<std::int64_t>(r) << bits);
    const double width = value_of(first + 1) - value_of(first);
    log2_share[r] = (std::log2(counts[r] + 0.5) + 2.0 * std::log2(width)) / 3.0;
  }

  // The largest common factor for which the cells are not too many, in steps of 2^(1/4).
  std::array<std::uint8_t, CellMap::kNumRegions> log2_parts{};
  const double most = *std::max_element(log2_share.begin(), log2_share.end());
  for (double factor = 0.0;; factor += 0.25) {
    std::array<std::uint8_t, CellMap::kNumRegions> larger{};
    std::size_t num_cells = 0;
    bool is_growing = false;
    for (std::size_t r = 0; r < CellMap::kNumRegions; ++r) {
      const double wanted = std::floor(log2_share[r] - most + factor);
      larger[r] = static_cast<std::uint8_t>(std::clamp(wanted, 0.0, static_cast<double>(bits)));
      is_growing = is_growing || (std::isfinite(wanted) && wanted < bits);
      num_cells += std::size_t{1} << larger[r];
    }
    if (num_cells > kMaxCells) break;
    log2_parts = larger;
    if (!is_growing) break;
  }
  return CellMap(static_cast<ScoreKey>(origin), bits, log2_parts);
}

std::vector<CellSums> sum_cells(std::span<const float> scores, const Bitmap& members,
                                const CellMap& map) {
  std::vector<CellSums> total(map.size());
  std::vector<SmallSums> small(map.size());
  std::size_t num_unflushed = 0;
  const auto flush = [&] {
    for (std::size_t c = 0; c < total.size(); ++c) {
      total[c].count += small[c].packed >> kCountShift;
      total[c].offsets += small[c].packed & ((std::uint64_t{1} << kCountShift) - 1);
      total[c].add_squares(small[c].squares);
      small[c] = {};
    }
    num_unflushed = 0;
  };
  Chunk chunk;
  for_each_chunk(scores, members,
                 [&](const float* first, const std::uint64_t* words, std::size_t num_words) {
                   if (num_unflushed + kChunk > kFlushCount) flush();
                   num_unflushed += add_chunk(first, words, num_words, map.grid(),
                                              map.regions().data(), chunk, small.data());
                 });
  flush();
  return total;
}

PartSums sum_parts(std::span<const float> scores, const Bitmap& members, const CellMap& map,
                   std::size_t first_cell) {
  const std::size_t num_parts = map.size() - first_cell;
  PartSums parts{.sums = std::vector<CellSums>(num_parts),
                 .lows = std::vector<ScoreKey>(num_parts, std::numeric_limits<ScoreKey>::max()),
                 .highs = std::vector<ScoreKey>(num_parts, std::numeric_limits<ScoreKey>::min())};
  const KeyFilter filter = filter_for(map, first_cell);
  const auto last_mark = static_cast<std::uint32_t>(filter.marks.size() - 1);
  Chunk chunk;
  const auto add = [&](const float* first, const std::uint64_t* words, std::size_t num_words) {
    const std::size_t n = filter_chunk(first, words, num_words, filter.first, filter.shift,
                                       filter.marks.data(), last_mark, chunk);
    for (std::size_t i = 0; i < n; ++i) {
      const ScoreKey key = chunk.keys[i];
      const std::size_t cell = map.find(key);
      if (cell < first_cell) continue;
      const std::size_t part = cell - first_cell;
      const auto offset = static_cast<std::uint64_t>(key - map[cell].first);
      ++parts.sums[part].count;
      parts.sums[part].offsets += offset;
      parts.sums[part].add_squares(offset * offset);
      parts.lows[part] = std::min(parts.lows[part], key);
      parts.highs[part] = std::max(parts.highs[part], key);
    }
  };
  for_each_chunk(scores, members, add);
  return parts;
}

Moments moments_of(const CellMap::Cell& cell, const CellSums& sums) {
  using Wide = unsigned __int128;
  const double step = spacing(cell);
  const auto count = static_cast<double>(sums.count);
  const Wide squares = (Wide{sums.squares_high} << 32U) + sums.squares_low;
  // count * the sum of the squared deviations, in whole numbers.
  const Wide scaled = squares * sums.count - Wide{sums.offsets} * sums.offsets;
  return {.count = count,
          .base = value_of(cell.first),
          .offset = step * (static_cast<double>(sums.offsets) / count),
          .squares = step * step * (static_cast<double>(scaled) / count)};
}

}  // namespace winnow::detail
