// Independent coin flips for 64 samples at a time, then single corrections until the size is right.
// Given its size, a set of independent flips is uniform, and adding (or removing) a uniformly
// chosen element keeps it uniform; so the result is exactly uniform whatever the probability of the
// flips.
#include "base/random/subset.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads.h"

namespace tamis::detail {

namespace {

// Precision of the coin in bits; the corrections make up for the rest.
constexpr unsigned kCoinBits = 16;

// Keeps each candidate with probability heads / 2^16, 64 at a time: the binary digits of the
// probability, lowest first, each halve the distance to 0 (AND) or to 1 (OR). Requires: 0 < heads <
// 2^16.
void flip_coins(std::uint64_t heads, RandomStream& random, std::span<const std::uint64_t> from,
                std::span<std::uint64_t> to) {
  const auto first_digit = static_cast<unsigned>(std::countr_zero(heads));
  const std::size_t num_digits = kCoinBits - first_digit;
  constexpr std::size_t kWords = 64;
  const Parts parts(from.size(), kWords, kSamplesPerThread / 64);
  std::vector<RandomStream> streams(parts.size(), random);
  parts.run([&](std::size_t part) {
    streams[part].skip(parts.begin(part) * num_digits);
    std::array<std::uint64_t, kWords * kCoinBits> numbers;
    for (std::size_t begin = parts.begin(part); begin < parts.end(part); begin += kWords) {
      const std::size_t count = std::min(kWords, parts.end(part) - begin);
      streams[part].take(std::span(numbers).first(count * num_digits));
      std::array<std::uint64_t, kWords> coins{};
      for (std::size_t d = 0; d < num_digits; ++d) {
        if (((heads >> (first_digit + d)) & 1U) != 0) {
          for (std::size_t w = 0; w < count; ++w) coins[w] |= numbers[w * num_digits + d];
        } else {
          for (std::size_t w = 0; w < count; ++w) coins[w] &= numbers[w * num_digits + d];
        }
      }
      for (std::size_t w = 0; w < count; ++w) to[begin + w] = from[begin + w] & coins[w];
    }
  });
  random = streams.back();
}

// One candidate after the other (Knuth's algorithm S): slower, but the time does not depend on how
// rare the candidates are.
Bitmap choose_one_by_one(const Bitmap& candidates, std::size_t num_candidates, std::size_t count,
                         RandomStream& random) {
  Bitmap chosen(candidates.size());
  std::size_t remaining = num_candidates;
  const auto words = candidates.words();
  for (std::size_t w = 0; w < words.size() && count > 0; ++w) {
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      if (random.below(remaining--) >= count) continue;
      chosen.set(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      if (--count == 0) break;
    }
  }
  return chosen;
}

}  // namespace

Bitmap choose(const Bitmap& candidates, std::size_t num_candidates, std::size_t count,
              RandomStream& random) {
  if (count == num_candidates) return candidates;
  const std::size_t size = candidates.size();
  const std::size_t num_left_out = num_candidates - count;
  // The corrections look for a candidate by trying positions: both kinds must be easy to hit.
  if (count < size / 64 || num_left_out < size / 64 || size < 256) {
    return choose_one_by_one(candidates, num_candidates, count, random);
  }

  Bitmap chosen(size);
  const std::uint64_t heads = std::clamp<std::uint64_t>(
      ((static_cast<std::uint64_t>(count) << kCoinBits) + num_candidates / 2) / num_candidates, 1,
      (1U << kCoinBits) - 1);
  flip_coins(heads, random, candidates.words(), chosen.words());
  std::size_t num_chosen = chosen.count();
  while (num_chosen > count) {
    const std::size_t i = random.below(size);
    if (chosen.test(i)) {
      chosen.clear(i);
      --num_chosen;
    }
  }
  while (num_chosen < count) {
    const std::size_t i = random.below(size);
    if (candidates.test(i) && !chosen.test(i)) {
      chosen.set(i);
      ++num_chosen;
    }
  }
  return chosen;
}

Bitmap choose(std::size_t size, std::size_t count, RandomStream& random) {
  return choose(Bitmap(size, true), size, count, random);
}

}  // namespace tamis::detail
