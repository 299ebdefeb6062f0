// A plain Fisher-Yates shuffle of a large array misses the cache at every step. So every position
// is first thrown into a random bucket that fits the cache, then each bucket is shuffled by itself:
// independent uniform buckets with a uniform order inside each are a uniform permutation.
#include "detail/shuffle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "detail/multiversion.h"
#include "detail/random.h"

namespace winnow::detail {

namespace {

// Below this count the array is in the cache anyway.
constexpr std::size_t kDirectCount = 3'000'000;
constexpr std::size_t kBucketCount = 65536;
// One cache line being written per bucket must stay in the first-level cache.
constexpr std::size_t kMaxBuckets = 512;

// Positions of the set bits of each byte, for writing eight at a time.
struct BytePositions {
  std::array<std::array<std::uint8_t, 8>, 256> table{};
  constexpr BytePositions() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      unsigned n = 0;
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (((byte >> bit) & 1U) != 0) table[byte][n++] = static_cast<std::uint8_t>(bit);
      }
    }
  }
};
constexpr BytePositions kBytePositions;

// Writes the positions of all set bits in order. Writes up to 8 elements at a time, so it stops
// using the table where that would pass the end of the array.
WINNOW_MULTIVERSION
void list_positions(const std::uint64_t* words, std::size_t num_words, std::uint32_t* out,
                    const std::uint32_t* end) {
  std::size_t w = 0;
  for (; w < num_words && end - out >= 64; ++w) {
    std::uint64_t bits = words[w];
    for (std::size_t byte = 0; byte < 8; ++byte, bits >>= 8U) {
      const auto& positions = kBytePositions.table[bits & 255U];
      const auto base = static_cast<std::uint32_t>(w * 64 + byte * 8);
      for (std::size_t k = 0; k < 8; ++k) out[k] = base + positions[k];
      out += std::popcount(bits & 255U);
    }
  }
  for (; w < num_words; ++w) {
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      *out++ =
          static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(bits));
    }
  }
}

constexpr std::size_t kStep = 2 * RandomStream::kBlock;

// offsets[k] = uniform in [0, bound - k) from 32 random bits each, by multiplication (Lemire).
// Returns true if some of them may be biased and have to be checked.
WINNOW_MULTIVERSION
bool scale_offsets(const std::uint32_t* random, std::uint32_t bound, std::uint32_t* offsets,
                   std::uint32_t* low_halves) {
  std::uint32_t suspicious = 0;
  for (std::uint32_t k = 0; k < kStep; ++k) {
    const std::uint64_t product = std::uint64_t{random[k]} * (bound - k);
    offsets[k] = static_cast<std::uint32_t>(product >> 32U);
    low_halves[k] = static_cast<std::uint32_t>(product);
    suspicious |= static_cast<std::uint32_t>(low_halves[k] < bound);
  }
  return suspicious != 0;
}

// Draws again for the offsets whose low half falls into the biased zone.
void redo_biased(std::uint32_t bound, std::uint32_t* offsets, const std::uint32_t* low_halves,
                 RandomStream& retries) {
  for (std::uint32_t k = 0; k < kStep; ++k) {
    const std::uint32_t range = bound - k;
    if (low_halves[k] >= range) continue;
    const std::uint32_t threshold = (0U - range) % range;
    if (low_halves[k] < threshold) offsets[k] = static_cast<std::uint32_t>(retries.below(range));
  }
}

// Fisher-Yates, with the offsets of kStep steps made at once.
void shuffle(std::uint32_t* items, std::size_t count, RandomStream& random, RandomStream& retries) {
  alignas(64) std::array<std::uint32_t, kStep> draws;
  alignas(64) std::array<std::uint32_t, kStep> offsets;
  alignas(64) std::array<std::uint32_t, kStep> low_halves;
  auto remaining = static_cast<std::uint32_t>(count);
  while (remaining > kStep) {
    const std::uint64_t* block = random.next_block();
    for (std::size_t k = 0; k < RandomStream::kBlock; ++k) {
      draws[2 * k] = static_cast<std::uint32_t>(block[k]);
      draws[2 * k + 1] = static_cast<std::uint32_t>(block[k] >> 32U);
    }
    if (scale_offsets(draws.data(), remaining, offsets.data(), low_halves.data())) {
      redo_biased(remaining, offsets.data(), low_halves.data(), retries);
    }
    for (const std::uint32_t offset : offsets) std::swap(items[--remaining], items[offset]);
  }
  while (remaining > 1) {
    const auto offset = random.below(remaining);
    std::swap(items[--remaining], items[offset]);
  }
}

// Random bucket numbers, 16 bits of a random number each.
class BucketDraws {
 public:
  BucketDraws(std::uint64_t seed, std::uint64_t epoch, std::size_t num_buckets)
      : random_(seed, epoch, Purpose::buckets), mask_(num_buckets - 1) {}

  std::size_t next() {
    if (left_ == 0) {
      word_ = random_.next();
      left_ = 4;
    }
    const std::size_t bucket = word_ & mask_;
    word_ >>= 16U;
    --left_;
    return bucket;
  }

 private:
  RandomStream random_;
  std::uint64_t mask_;
  std::uint64_t word_ = 0;
  unsigned left_ = 0;
};

// Start of every bucket, and the end of the last. Replays the draws that the scatter will make.
std::vector<std::size_t> bucket_starts(std::size_t count, std::size_t num_buckets,
                                       std::uint64_t seed, std::uint64_t epoch) {
  BucketDraws draws(seed, epoch, num_buckets);
  // Neighbouring draws often hit the same counter: four copies keep their updates apart.
  std::array<std::array<std::uint32_t, kMaxBuckets>, 4> counts{};
  for (std::size_t i = 0; i < count; ++i) ++counts[i & 3U][draws.next()];
  std::vector<std::size_t> starts(num_buckets + 1, 0);
  for (std::size_t b = 0; b < num_buckets; ++b) {
    starts[b + 1] = starts[b] + counts[0][b] + counts[1][b] + counts[2][b] + counts[3][b];
  }
  return starts;
}

void scatter(const Bitmap& kept, std::vector<std::size_t> next, BucketDraws& draws,
             std::uint32_t* out) {
  const auto words = kept.words();
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      out[next[draws.next()]++] =
          static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(bits));
    }
  }
}

}  // namespace

Array<std::uint32_t> shuffled_positions(const Bitmap& kept, std::size_t count, std::uint64_t seed,
                                        std::uint64_t epoch) {
  Array<std::uint32_t> order(count);
  RandomStream random(seed, epoch, Purpose::order);
  RandomStream retries(seed, epoch, Purpose::order_retries);
  if (count <= kDirectCount) {
    const auto words = kept.words();
    list_positions(words.data(), words.size(), order.data(), order.data() + count);
    shuffle(order.data(), count, random, retries);
    return order;
  }
  const std::size_t num_buckets = std::min(kMaxBuckets, std::bit_ceil(count / kBucketCount + 1));
  BucketDraws draws(seed, epoch, num_buckets);
  const auto starts = bucket_starts(count, num_buckets, seed, epoch);
  scatter(kept, starts, draws, order.data());
  for (std::size_t b = 0; b < num_buckets; ++b) {
    shuffle(order.data() + starts[b], starts[b + 1] - starts[b], random, retries);
  }
  return order;
}

}  // namespace winnow::detail
