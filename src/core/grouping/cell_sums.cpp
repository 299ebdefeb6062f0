#include "core/grouping/cell_sums.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/simd/kernels.h"
#include "base/threads.h"

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

// Scores on the way to their cells.
struct Chunk {
  alignas(64) std::array<float, kChunk + 8> scores;
  alignas(64) std::array<ScoreKey, kChunk> keys;
  alignas(64) std::array<std::uint32_t, kChunk> indices;
  alignas(64) std::array<std::uint32_t, kChunk> offsets;
};

void add_chunk(const Chunk& chunk, std::size_t count, SmallSums* sums) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t offset = chunk.offsets[i];
    SmallSums& cell = sums[chunk.indices[i]];
    cell.packed += (std::uint64_t{1} << kCountShift) | offset;
    cell.squares += offset * offset;
  }
}

// Marks sections of 2^shift keys; everything outside them falls into the last, unmarked one.
struct KeyFilter {
  ScoreKey first = 0;
  unsigned shift = 0;
  std::vector<std::uint8_t> marks;
};

// Lists the keys of `count` scores in marked sections in chunk.keys. Returns how many.
std::size_t filter_chunk(const KeyFilter& filter, std::size_t count, Chunk& chunk) {
  const auto last = static_cast<std::uint32_t>(filter.marks.size() - 1);
  kernels().find_sections(chunk.scores.data(), count, filter.first, filter.shift, last,
                          chunk.keys.data(), chunk.indices.data());
  // Without a branch, which nobody could predict.
  std::size_t num_marked = 0;
  for (std::size_t i = 0; i < count; ++i) {
    chunk.keys[num_marked] = chunk.keys[i];
    num_marked += filter.marks[chunk.indices[i]];
  }
  return num_marked;
}

// The words of the members in parts.
Parts parts_of(const Bitmap& members) {
  return {members.words().size(), kChunkWords, kSamplesPerThread / 64};
}

// Calls use(scores, words, num_words) for the members of words [begin, end); the last word is
// padded where the scores end within it.
template <typename Use>
void for_each_chunk(std::span<const float> scores, const Bitmap& members, std::size_t begin,
                    std::size_t end, Use use) {
  const std::span<const std::uint64_t> words = members.words();
  const std::size_t whole = std::min(end, scores.size() / 64);
  for (std::size_t w = begin; w < whole; w += kChunkWords) {
    use(&scores[w * 64], &words[w], std::min(kChunkWords, whole - w));
  }
  if (whole < end) {
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

namespace {

std::vector<CellSums> sum_cells(std::span<const float> scores, const Bitmap& members,
                                const CellMap& map, std::size_t begin, std::size_t end) {
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
  const RegionGrid grid{.origin = map.grid().origin,
                        .region_bits = map.grid().region_bits,
                        .num_regions = CellMap::kNumRegions};
  Chunk chunk;
  for_each_chunk(scores, members, begin, end,
                 [&](const float* first, const std::uint64_t* words, std::size_t num_words) {
                   if (num_unflushed + kChunk > kFlushCount) flush();
                   const std::size_t n =
                       kernels().pick(first, words, num_words, chunk.scores.data());
                   kernels().find_cells(chunk.scores.data(), n, grid, map.regions().data(),
                                        chunk.indices.data(), chunk.offsets.data());
                   add_chunk(chunk, n, small.data());
                   num_unflushed += n;
                 });
  flush();
  return total;
}

PartSums sum_parts(std::span<const float> scores, const Bitmap& members, const CellMap& map,
                   std::size_t first_cell, const KeyFilter& filter, std::size_t begin,
                   std::size_t end) {
  const std::size_t num_parts = map.size() - first_cell;
  PartSums parts{.sums = std::vector<CellSums>(num_parts),
                 .lows = std::vector<ScoreKey>(num_parts, std::numeric_limits<ScoreKey>::max()),
                 .highs = std::vector<ScoreKey>(num_parts, std::numeric_limits<ScoreKey>::min())};
  Chunk chunk;
  for_each_chunk(scores, members, begin, end,
                 [&](const float* first, const std::uint64_t* words, std::size_t num_words) {
                   const std::size_t n = filter_chunk(
                       filter, kernels().pick(first, words, num_words, chunk.scores.data()), chunk);
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

void add(CellSums& total, const CellSums& sums) {
  total.count += sums.count;
  total.offsets += sums.offsets;
  total.squares_low += sums.squares_low;
  total.squares_high += sums.squares_high;
}

}  // namespace

std::vector<CellSums> sum_cells(std::span<const float> scores, const Bitmap& members,
                                const CellMap& map) {
  const Parts threads = parts_of(members);
  std::vector<std::vector<CellSums>> sums(threads.size());
  threads.run([&](std::size_t t) {
    sums[t] = sum_cells(scores, members, map, threads.begin(t), threads.end(t));
  });
  for (std::size_t t = 1; t < sums.size(); ++t) {
    for (std::size_t c = 0; c < map.size(); ++c) add(sums[0][c], sums[t][c]);
  }
  return std::move(sums[0]);
}

PartSums sum_parts(std::span<const float> scores, const Bitmap& members, const CellMap& map,
                   std::size_t first_cell) {
  const KeyFilter filter = filter_for(map, first_cell);
  const Parts threads = parts_of(members);
  std::vector<PartSums> sums(threads.size());
  threads.run([&](std::size_t t) {
    sums[t] = sum_parts(scores, members, map, first_cell, filter, threads.begin(t), threads.end(t));
  });
  for (std::size_t t = 1; t < sums.size(); ++t) {
    for (std::size_t part = 0; part < sums[0].sums.size(); ++part) {
      add(sums[0].sums[part], sums[t].sums[part]);
      sums[0].lows[part] = std::min(sums[0].lows[part], sums[t].lows[part]);
      sums[0].highs[part] = std::max(sums[0].highs[part], sums[t].highs[part]);
    }
  }
  return std::move(sums[0]);
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
