// A plain Fisher-Yates shuffle of a large array misses the cache at every step. So every position
// is first thrown into a random bucket that fits the cache, then each bucket is shuffled by itself:
// independent uniform buckets with a uniform order inside each are a uniform permutation.
#include "base/random/shuffle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/random/random.h"
#include "base/simd/kernels.h"

namespace tamis::detail {

namespace {

// Below this count the array is in the cache anyway.
constexpr std::size_t kDirectCount = 3'000'000;
// The line being written of every bucket must stay in the first-level cache; with fewer buckets,
// neighbouring draws hit the same one more often and wait for each other.
constexpr std::size_t kNumBuckets = 512;

// Each random number serves two steps.
constexpr std::size_t kStep = 2 * RandomStream::kBlock;
static_assert(kStep == 512, "what make_offsets makes at a time");

// Draws again where the low half falls into the biased zone (Lemire). In the order of the steps.
void redo_biased(const std::uint64_t* random, std::uint32_t bound, std::uint32_t* offsets,
                 RandomStream& retries) {
  for (std::uint32_t step = 0; step < kStep; ++step) {
    const std::size_t half = step / RandomStream::kBlock;
    const std::size_t k = step % RandomStream::kBlock;
    const std::uint32_t range = bound - step;
    const auto low = static_cast<std::uint32_t>(random[k] >> (32 * half)) * range;
    if (low < range && low < -range % range) {
      offsets[2 * k + half] = static_cast<std::uint32_t>(retries.below(range));
    }
  }
}

// Fisher-Yates, with the random numbers of kStep steps made at once.
void shuffle(std::uint32_t* items, std::size_t count, RandomStream& random, RandomStream& retries) {
  alignas(64) std::array<std::uint32_t, kStep> offsets;
  std::size_t remaining = count;
  while (remaining > kStep) {
    const std::uint64_t* const numbers = random.next_block();
    const auto bound = static_cast<std::uint32_t>(remaining);
    if (kernels().make_offsets(numbers, bound, offsets.data())) {
      redo_biased(numbers, bound, offsets.data(), retries);
    }
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t k = half; k < kStep; k += 2) {
        std::swap(items[--remaining], items[offsets[k]]);
      }
    }
  }
  while (remaining > 1) {
    const auto offset = random.below(remaining);
    std::swap(items[--remaining], items[offset]);
  }
}

// Throws the kept positions into buckets, a chunk of the bitmap at a time. Two passes make the same
// draws: the first counts, the second writes.
class BucketScatter {
 public:
  BucketScatter(const Bitmap& kept, std::uint64_t seed, std::uint64_t epoch)
      : words_(kept.words()), seed_(seed), epoch_(epoch) {}

  // Start of every bucket, and the end of the last.
  std::vector<std::size_t> starts() const {
    // Neighbouring draws may hit the same counter: two copies keep their updates apart.
    std::array<std::array<std::uint32_t, kNumBuckets>, 2> counts{};
    for_each_chunk([&](std::size_t begin, std::size_t end, const Draws& draws) {
      const std::size_t count = kernels().count_ones(&words_[begin], end - begin);
      for (std::size_t k = 0; k + 1 < count; k += 2) {
        ++counts[0][draws[k]];
        ++counts[1][draws[k + 1]];
      }
      if (count % 2 == 1) ++counts[0][draws[count - 1]];
    });
    std::vector<std::size_t> starts(kNumBuckets + 1, 0);
    for (std::size_t b = 0; b < kNumBuckets; ++b) {
      starts[b + 1] = starts[b] + counts[0][b] + counts[1][b];
    }
    return starts;
  }

  void write(std::vector<std::size_t> next, std::uint32_t* out) const {
    std::array<std::uint32_t, kChunk + 64> positions;
    for_each_chunk([&](std::size_t begin, std::size_t end, const Draws& draws) {
      const auto* last = kernels().list_positions(words_.data(), begin, end, positions.data(),
                                                  positions.data() + positions.size());
      const auto count = static_cast<std::size_t>(last - positions.data());
      for (std::size_t k = 0; k < count; ++k) {
        std::uint32_t* const place = out + next[draws[k]]++;
        *place = positions[k];
        // Two cache lines ahead: a store that waits for its line holds up all that follow.
        __builtin_prefetch(place + 128 / sizeof(*place), 1);
      }
    });
  }

 private:
  static constexpr std::size_t kChunk = 4 * RandomStream::kBlock;  // 16 bits of a number per draw
  using Draws = std::array<std::uint16_t, kChunk>;

  template <typename Visit>
  void for_each_chunk(Visit visit) const {
    RandomStream random(seed_, epoch_, Purpose::buckets);
    Draws draws;
    constexpr std::size_t kChunkWords = kChunk / 64;
    for (std::size_t begin = 0; begin < words_.size(); begin += kChunkWords) {
      // The lowest 16 bits of a number come first.
      static_assert(std::endian::native == std::endian::little);
      std::memcpy(draws.data(), random.next_block(), sizeof draws);
      for (std::uint16_t& draw : draws) draw &= kNumBuckets - 1;
      visit(begin, std::min(begin + kChunkWords, words_.size()), draws);
    }
  }

  std::span<const std::uint64_t> words_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
};

// Brings a bucket into the cache by reading it once from front to back, which the processor does
// much faster than the random accesses of the shuffle would.
void touch(const std::uint32_t* items, std::size_t count) {
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < count; ++i) any |= items[i];
  asm volatile("" : : "r"(any));
}

}  // namespace

Array<std::uint32_t> shuffled_positions(const Bitmap& kept, std::size_t count, std::uint64_t seed,
                                        std::uint64_t epoch) {
  Array<std::uint32_t> order(count);
  RandomStream random(seed, epoch, Purpose::order);
  RandomStream retries(seed, epoch, Purpose::order_retries);
  if (count <= kDirectCount) {
    const auto words = kept.words();
    kernels().list_positions(words.data(), 0, words.size(), order.data(), order.data() + count);
    shuffle(order.data(), count, random, retries);
    return order;
  }
  const BucketScatter buckets(kept, seed, epoch);
  const auto starts = buckets.starts();
  buckets.write(starts, order.data());
  for (std::size_t b = 0; b < kNumBuckets; ++b) {
    std::uint32_t* const bucket = order.data() + starts[b];
    const std::size_t size = starts[b + 1] - starts[b];
    touch(bucket, size);
    shuffle(bucket, size, random, retries);
  }
  return order;
}

}  // namespace tamis::detail
