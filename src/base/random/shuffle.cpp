// A plain Fisher-Yates shuffle of a large array misses the cache at every step. So every position
// is first thrown into a random bucket that fits the cache, then each bucket is shuffled by itself:
// independent uniform buckets with a uniform order inside each are a uniform permutation.
#include "base/random/shuffle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "base/byte_positions.h"
#include "base/multiversion.h"
#include "base/random/random.h"

namespace tamis::detail {

namespace {

// Below this count the array is in the cache anyway.
constexpr std::size_t kDirectCount = 3'000'000;
// The line being written of every bucket must stay in the first-level cache; with fewer buckets,
// neighbouring draws hit the same one more often and wait for each other.
constexpr std::size_t kNumBuckets = 512;

constexpr BytePositions<std::uint8_t> kBytePositions;

// Writes the positions of all set bits in order, the first word being number `first_word`. Writes
// eight elements at a time, so it stops using the table where that would pass the end of the array.
// Returns the end of what it wrote.
TAMIS_MULTIVERSION
std::uint32_t* list_positions(const std::uint64_t* words, std::size_t first_word,
                              std::size_t end_word, std::uint32_t* out, const std::uint32_t* end) {
  std::size_t w = first_word;
  for (; w < end_word && end - out >= 64; ++w) {
    std::uint64_t bits = words[w];
    for (std::size_t byte = 0; byte < 8; ++byte, bits >>= 8U) {
      const auto& positions = kBytePositions.table[bits & 255U];
      const auto base = static_cast<std::uint32_t>(w * 64 + byte * 8);
      for (std::size_t k = 0; k < 8; ++k) out[k] = base + positions[k];
      out += std::popcount(bits & 255U);
    }
  }
  for (; w < end_word; ++w) {
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      *out++ =
          static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(bits));
    }
  }
  return out;
}

// Each random number serves two steps.
constexpr std::size_t kStep = 2 * RandomStream::kBlock;
constexpr std::uint64_t kLowHalf = 0xffffffffU;

// products[k] = 32 random bits times (bound - k): its high half is uniform in [0, bound - k) unless
// the low half falls into a small biased zone (Lemire). Returns true if that may be so for some k.
TAMIS_MULTIVERSION
bool scale(const std::uint64_t* random, std::uint64_t bound, std::uint64_t* products) {
  std::uint64_t suspicious = 0;
  for (std::size_t k = 0; k < RandomStream::kBlock; ++k) {
    const std::uint64_t first = (random[k] & kLowHalf) * (bound - k);
    const std::uint64_t second = (random[k] >> 32U) * (bound - RandomStream::kBlock - k);
    products[k] = first;
    products[k + RandomStream::kBlock] = second;
    // The sign of the difference: below the bound means possibly biased.
    suspicious |= ((first & kLowHalf) - bound) | ((second & kLowHalf) - bound);
  }
  return (suspicious >> 63U) != 0;
}

// Draws again where the low half falls into the biased zone.
void redo_biased(std::uint64_t bound, std::uint64_t* products, RandomStream& retries) {
  for (std::size_t k = 0; k < kStep; ++k) {
    const std::uint64_t range = bound - k;
    const std::uint64_t low = products[k] & kLowHalf;
    if (low < range && low < (kLowHalf + 1 - range) % range) {
      products[k] = retries.below(range) << 32U;
    }
  }
}

// Fisher-Yates, with the random numbers of kStep steps made at once.
void shuffle(std::uint32_t* items, std::size_t count, RandomStream& random, RandomStream& retries) {
  alignas(64) std::array<std::uint64_t, kStep> products;
  std::size_t remaining = count;
  while (remaining > kStep) {
    if (scale(random.next_block(), remaining, products.data())) {
      redo_biased(remaining, products.data(), retries);
    }
    for (const std::uint64_t product : products)
      std::swap(items[--remaining], items[product >> 32U]);
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
      std::size_t count = 0;
      for (std::size_t w = begin; w < end; ++w) {
        count += static_cast<std::size_t>(std::popcount(words_[w]));
      }
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
      const auto* last = list_positions(words_.data(), begin, end, positions.data(),
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
      const std::uint64_t* block = random.next_block();
      for (std::size_t k = 0; k < RandomStream::kBlock; ++k) {
        for (std::size_t part = 0; part < 4; ++part) {
          draws[4 * k + part] =
              static_cast<std::uint16_t>((block[k] >> (16 * part)) & (kNumBuckets - 1));
        }
      }
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
    list_positions(words.data(), 0, words.size(), order.data(), order.data() + count);
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
