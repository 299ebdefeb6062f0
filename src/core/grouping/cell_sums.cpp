#include "core/grouping/cell_sums.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/byte_positions.h"
#include "base/multiversion.h"

namespace tamis::detail {

namespace {

constexpr std::size_t kChunkWords = 16;
constexpr std::size_t kChunk = kChunkWords * 64;

// Totals of at most kFlushCount scores: the offsets in the lower 42 bits of `packed`, the count in
// the upper ones.
struct SmallSums {
  std::uint64_t packed = 0;
  std::uint64_t squares = 0;
};
constexpr unsigned kCountShift = 42;
constexpr std::size_t kFlushCount = std::size_t{1} << 20U;
static_assert(kFlushCount << CellMap::kMaxRegionBits <= std::uint64_t{1} << kCountShift);
static_assert(kFlushCount > kChunk);

[[maybe_unused]] constexpr BytePositions<std::int32_t> kBytePositions;

// Writes the members among 64 scores per word, and up to 8 numbers more. Returns how many.
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

// Scores on the way to their cells, in steps over short arrays, which the compiler vectorizes.
struct Chunk {
  alignas(64) std::array<float, kChunk + 8> scores;
  alignas(64) std::array<ScoreKey, kChunk> keys;
  alignas(64) std::array<std::uint32_t, kChunk> places;
  alignas(64) std::array<std::uint32_t, kChunk> indices;
  alignas(64) std::array<std::uint32_t, kChunk> offsets;
};

TAMIS_MULTIVERSION
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
    const std::uint32_t cells = chunk.indices[i];
    chunk.indices[i] = grid.cell(chunk.places[i], cells);
    chunk.offsets[i] = chunk.places[i] & ((1U << (cells & 31U)) - 1);
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

// Lists the keys of members in marked sections in chunk.keys. Returns how many.
TAMIS_MULTIVERSION
std::size_t filter_chunk(const float* scores, const std::uint64_t* words, std::size_t num_words,
                         ScoreKey first, unsigned shift, const std::uint8_t* marks,
                         std::uint32_t last_mark, Chunk& chunk) {
  const std::size_t n = pick(scores, words, num_words, chunk.scores.data());
  for (std::size_t i = 0; i < n; ++i) {
    chunk.keys[i] = key_of(chunk.scores[i]);
    chunk.places[i] = static_cast<std::uint32_t>(chunk.keys[i]) - static_cast<std::uint32_t>(first);
    chunk.indices[i] = std::min(chunk.places[i] >> shift, last_mark);
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

KeyFilter filter_for(const CellMap& map, std::size_t first_cell) {
  constexpr std::int64_t kMaxMarks = 16384;
  const auto end_of = [&](std::size_t c) {
    return map[c].first + (std::int64_t{1} << map[c].log2_size);
  };
  std::int64_t begin = map[first_cell].first;
  std::int64_t end = end_of(first_cell);
  for (std::size_t c = first_cell; c < map.size(); ++c) {
    begin = std::min(begin, std::int64_t{map[c].first});
    end = std::max(end, end_of(c));
  }
  KeyFilter filter;
  filter.first = static_cast<ScoreKey>(begin);
  while (((end - begin) >> filter.shift) >= kMaxMarks) ++filter.shift;
  filter.marks.assign(static_cast<std::size_t>((end - 1 - begin) >> filter.shift) + 2, 0);
  for (std::size_t c = first_cell; c < map.size(); ++c) {
    const auto first = static_cast<std::size_t>((map[c].first - begin) >> filter.shift);
    const auto last = static_cast<std::size_t>((end_of(c) - 1 - begin) >> filter.shift);
    std::fill(&filter.marks[first], &filter.marks[last] + 1, std::uint8_t{1});
  }
  return filter;
}

}  // namespace

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
  for_each_chunk(
      scores, members, [&](const float* first, const std::uint64_t* words, std::size_t num_words) {
        const std::size_t n = filter_chunk(first, words, num_words, filter.first, filter.shift,
                                           filter.marks.data(), last_mark, chunk);
        for (const ScoreKey key : std::span(chunk.keys).first(n)) {
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
      });
  return parts;
}

Moments moments_of(const CellMap::Cell& cell, const CellSums& sums) {
  using Wide = unsigned __int128;
  const double step = spacing_at(cell.first);
  const auto count = static_cast<double>(sums.count);
  const Wide squares = (Wide{sums.squares_high} << 32U) + sums.squares_low;
  // count * the sum of the squared deviations, in whole numbers.
  const Wide scaled = squares * sums.count - Wide{sums.offsets} * sums.offsets;
  return {.count = count,
          .base = value_of(cell.first),
          .offset = step * (static_cast<double>(sums.offsets) / count),
          .squares = step * step * (static_cast<double>(scaled) / count)};
}

}  // namespace tamis::detail
