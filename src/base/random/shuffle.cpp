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
#include "base/threads.h"

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

// Replaces the offsets whose low half falls into the biased zone (Lemire), in the order of the
// steps, by what redraw(range) returns.
template <typename Redraw>
void replace_biased(const std::uint64_t* random, std::uint32_t bound, std::uint32_t* offsets,
                    Redraw redraw) {
  for (std::size_t half = 0; half < 2; ++half) {
    const auto range_of = [&](std::size_t k) {
      return bound - static_cast<std::uint32_t>(half * RandomStream::kBlock + k);
    };
    const auto low_of = [&](std::size_t k) {
      return static_cast<std::uint32_t>(random[k] >> (32 * half)) * range_of(k);
    };
    // Hardly any is, so look at some at a time without a branch.
    constexpr std::size_t kSome = 32;
    for (std::size_t begin = 0; begin < RandomStream::kBlock; begin += kSome) {
      std::uint32_t num_suspicious = 0;
      for (std::size_t k = begin; k < begin + kSome; ++k) {
        num_suspicious += low_of(k) < range_of(k) ? 1U : 0U;
      }
      for (std::size_t k = begin; k < begin + kSome && num_suspicious > 0; ++k) {
        const std::uint32_t range = range_of(k);
        if (low_of(k) < range && low_of(k) < -range % range) offsets[2 * k + half] = redraw(range);
      }
    }
  }
}

// Fisher-Yates, with the random numbers of kStep steps made at once: swap(last, other) for every
// last item of the first count, count - 1, ..., 2.
template <typename Redraw, typename Swap>
void draw_swaps(std::size_t count, RandomStream& random, Redraw redraw, Swap swap) {
  alignas(64) std::array<std::uint32_t, kStep> offsets;
  std::size_t remaining = count;
  while (remaining > kStep) {
    const std::uint64_t* const numbers = random.next_block();
    const auto bound = static_cast<std::uint32_t>(remaining);
    if (kernels().make_offsets(numbers, bound, offsets.data())) {
      replace_biased(numbers, bound, offsets.data(), redraw);
    }
    for (std::size_t half = 0; half < 2; ++half) {
      // Eight at a time, which compilers unroll: the fewer instructions between the accesses, the
      // more of these are under way.
      for (std::size_t k = half; k < kStep; k += 16) {
        for (std::size_t i = 0; i < 16; i += 2) swap(--remaining, offsets[k + i]);
      }
    }
  }
  while (remaining > 1) {
    const auto offset = static_cast<std::uint32_t>(random.below(remaining));
    swap(--remaining, offset);
  }
}

template <typename Redraw>
void shuffle(std::uint32_t* items, std::size_t count, RandomStream& random, Redraw redraw) {
  draw_swaps(count, random, redraw, [items](std::size_t last, std::uint32_t other) {
    std::swap(items[last], items[other]);
  });
}

std::uint32_t draw_from(RandomStream& stream, std::uint32_t range) {
  return static_cast<std::uint32_t>(stream.below(range));
}

// Throws the kept positions into buckets, a chunk of the bitmap at a time. Two passes make the same
// draws: the first counts, the second writes. Every part of the bitmap has its own place in each
// bucket, so that threads write what one would.
class BucketScatter {
 public:
  BucketScatter(const Bitmap& kept, std::uint64_t seed, std::uint64_t epoch)
      : words_(kept.words()),
        seed_(seed),
        epoch_(epoch),
        parts_(words_.size(), kChunkWords, kSamplesPerThread / 64),
        places_(parts_.size() * kNumBuckets) {}

  // Start of every bucket, and the end of the last.
  std::vector<std::size_t> count() {
    parts_.run([this](std::size_t part) { count(part); });
    std::vector<std::size_t> starts;
    std::size_t next = 0;
    for (std::size_t b = 0; b < kNumBuckets; ++b) {
      starts.push_back(next);
      for (std::size_t part = 0; part < parts_.size(); ++part) {
        next += std::exchange(places_[part * kNumBuckets + b], next);
      }
    }
    starts.push_back(next);
    return starts;
  }

  // After count(), once.
  void write(std::uint32_t* out) {
    parts_.run([&](std::size_t part) { write(part, out); });
  }

 private:
  static constexpr std::size_t kChunk = 4 * RandomStream::kBlock;  // 16 bits of a number per draw
  static constexpr std::size_t kChunkWords = kChunk / 64;
  using Draws = std::array<std::uint16_t, kChunk>;

  template <typename Visit>
  void for_each_chunk(std::size_t part, Visit visit) const {
    RandomStream random(seed_, epoch_, Purpose::buckets);
    random.skip(parts_.begin(part) / kChunkWords * RandomStream::kBlock);
    Draws draws;
    for (std::size_t begin = parts_.begin(part); begin < parts_.end(part); begin += kChunkWords) {
      // The lowest 16 bits of a number come first.
      static_assert(std::endian::native == std::endian::little);
      std::memcpy(draws.data(), random.next_block(), sizeof draws);
      for (std::uint16_t& draw : draws) draw &= kNumBuckets - 1;
      visit(begin, std::min(begin + kChunkWords, words_.size()), draws);
    }
  }

  void count(std::size_t part) {
    // Neighbouring draws may hit the same counter: two copies keep their updates apart.
    std::array<std::array<std::uint32_t, kNumBuckets>, 2> counts{};
    for_each_chunk(part, [&](std::size_t begin, std::size_t end, const Draws& draws) {
      const std::size_t count = kernels().count_ones(&words_[begin], end - begin);
      for (std::size_t k = 0; k + 1 < count; k += 2) {
        ++counts[0][draws[k]];
        ++counts[1][draws[k + 1]];
      }
      if (count % 2 == 1) ++counts[0][draws[count - 1]];
    });
    for (std::size_t b = 0; b < kNumBuckets; ++b) {
      places_[part * kNumBuckets + b] = std::size_t{counts[0][b]} + counts[1][b];
    }
  }

  void write(std::size_t part, std::uint32_t* out) {
    std::array<std::size_t, kNumBuckets> next;
    std::copy_n(&places_[part * kNumBuckets], kNumBuckets, next.begin());
    std::array<std::uint32_t, kChunk + 64> positions;
    for_each_chunk(part, [&](std::size_t begin, std::size_t end, const Draws& draws) {
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

  std::span<const std::uint64_t> words_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  Parts parts_;
  std::vector<std::size_t> places_;  // per part and bucket: how many, then where they begin
};

// Brings a bucket into the cache by reading it once from front to back, which the processor does
// much faster than the random accesses of the shuffle would.
void touch(const std::uint32_t* items, std::size_t count) {
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < count; ++i) any |= items[i];
  asm volatile("" : : "r"(any));
}

// Blocks of random numbers that shuffling more than kStep items takes, unless a number of the last
// steps is drawn again, which is very rare.
std::uint64_t expected_blocks(std::size_t count) {
  const std::size_t num_whole = (count - 1) / kStep;
  const std::size_t num_single = count - num_whole * kStep - 1;
  return num_whole + (num_single + RandomStream::kBlock - 1) / RandomStream::kBlock;
}

// Buckets that one thread shuffles.
struct BucketRange {
  std::size_t first = 0;
  std::size_t last = 0;
  RandomStream random;                      // where its numbers begin
  std::uint64_t expected_end = 0;           // in blocks of them
  std::vector<std::uint32_t> redrawn = {};  // ranges of biased offsets, then what is drawn instead
};

// All buckets take their numbers from one stream, and draw again from another one. So each thread
// begins where its numbers are expected to be, and first looks which ones have to be drawn again.
// Empty if the numbers turn out to be elsewhere, or cannot be told beforehand.
std::vector<BucketRange> divide_buckets(std::span<const std::size_t> starts,
                                        const RandomStream& random, const RandomStream& retries) {
  const std::size_t num_buckets = starts.size() - 1;
  const auto size_of = [&](std::size_t b) { return starts[b + 1] - starts[b]; };
  const Parts parts(num_buckets, 1,
                    num_buckets / std::max<std::size_t>(1, starts.back() / kSamplesPerThread));
  if (parts.size() == 1) return {};
  std::vector<BucketRange> ranges;
  std::uint64_t num_blocks = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    BucketRange range{parts.begin(part), parts.end(part), random};
    range.random.skip(num_blocks * RandomStream::kBlock);
    for (std::size_t b = range.first; b < range.last; ++b) {
      if (size_of(b) <= kStep) return {};  // goes on within a block
      num_blocks += expected_blocks(size_of(b));
    }
    range.expected_end = num_blocks;
    ranges.push_back(std::move(range));
  }

  std::vector<std::uint64_t> ends(parts.size());
  parts.run([&](std::size_t part) {
    BucketRange& range = ranges[part];
    RandomStream numbers = range.random;
    const auto note = [&](std::uint32_t bound) {
      range.redrawn.push_back(bound);
      return std::uint32_t{0};
    };
    for (std::size_t b = range.first; b < range.last; ++b) {
      draw_swaps(size_of(b), numbers, note, [](std::size_t, std::uint32_t) {});
    }
    ends[part] = numbers.num_blocks();
  });
  RandomStream redraws = retries;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (ends[part] != ranges[part].expected_end) return {};
    for (std::uint32_t& number : ranges[part].redrawn) number = draw_from(redraws, number);
  }
  return ranges;
}

}  // namespace

void shuffle_buckets(std::uint32_t* items, std::span<const std::size_t> starts, std::uint64_t seed,
                     std::uint64_t epoch) {
  RandomStream random(seed, epoch, Purpose::order);
  RandomStream retries(seed, epoch, Purpose::order_retries);
  const auto shuffle_range = [&](std::size_t first, std::size_t last, RandomStream& numbers,
                                 auto redraw) {
    for (std::size_t b = first; b < last; ++b) {
      const std::size_t size = starts[b + 1] - starts[b];
      if (starts.size() > 2) touch(items + starts[b], size);  // a single one was just written
      shuffle(items + starts[b], size, numbers, redraw);
    }
  };
  std::vector<BucketRange> ranges = divide_buckets(starts, random, retries);
  if (ranges.empty()) {
    return shuffle_range(0, starts.size() - 1, random,
                         [&](std::uint32_t range) { return draw_from(retries, range); });
  }
  Parts(ranges.size(), 1, 1).run([&](std::size_t r) {
    auto next = ranges[r].redrawn.begin();
    shuffle_range(ranges[r].first, ranges[r].last, ranges[r].random,
                  [&](std::uint32_t) { return *next++; });
  });
}

Array<std::uint32_t> shuffled_positions(const Bitmap& kept, std::size_t count, std::uint64_t seed,
                                        std::uint64_t epoch) {
  Array<std::uint32_t> order(count);
  if (count <= kDirectCount) {
    const auto words = kept.words();
    kernels().list_positions(words.data(), 0, words.size(), order.data(), order.data() + count);
    shuffle_buckets(order.data(), std::array<std::size_t, 2>{0, count}, seed, epoch);
    return order;
  }
  BucketScatter buckets(kept, seed, epoch);
  const auto starts = buckets.count();
  buckets.write(order.data());
  shuffle_buckets(order.data(), starts, seed, epoch);
  return order;
}

}  // namespace tamis::detail
