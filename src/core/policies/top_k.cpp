// Radix selection: three counting passes over the digits of the scores find the border exactly.
#include "core/policies/top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/threads.h"

namespace tamis::detail {

namespace {

// Unsigned numbers in the order of the floats.
std::uint32_t to_ordered(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value == 0.0F ? 0.0F : value);  // -0 equals 0
  return (bits >> 31U) != 0 ? ~bits : bits | 0x80000000U;
}

float from_ordered(std::uint32_t ordered) {
  return std::bit_cast<float>((ordered >> 31U) != 0 ? ordered & 0x7fffffffU : ~ordered);
}

using Histogram = std::array<std::int64_t, 2048>;

// Of the scores that begin with the prefix, how many have which next digit. Two tables in turn:
// neighbours often have the same digit, and an increment waits for the one before.
Histogram count_digits(std::span<const float> scores, std::uint32_t prefix,
                       std::uint32_t prefix_mask, unsigned shift, std::uint32_t digit_mask) {
  std::array<Histogram, 2> counts{};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) continue;
    const std::uint32_t key = to_ordered(scores[i]);
    if ((key & prefix_mask) == prefix) ++counts[i % 2][(key >> shift) & digit_mask];
  }
  Histogram sum{};
  std::transform(counts[0].begin(), counts[0].end(), counts[1].begin(), sum.begin(), std::plus<>());
  return sum;
}

}  // namespace

ScoreBorder find_border(std::span<const float> scores, std::uint64_t count,
                        const std::function<void(std::span<std::int64_t>)>& add_up) {
  constexpr unsigned kDigitBits[] = {11, 11, 10};
  const Parts parts(scores.size(), 1, kSamplesPerThread);
  std::uint32_t prefix = 0;
  std::uint32_t prefix_mask = 0;
  unsigned shift = 32;
  for (const unsigned bits : kDigitBits) {
    shift -= bits;
    const std::uint32_t digit_mask = (1U << bits) - 1;
    std::vector<Histogram> histograms(parts.size());
    parts.run([&](std::size_t part) {
      const auto own = scores.subspan(parts.begin(part), parts.end(part) - parts.begin(part));
      histograms[part] = count_digits(own, prefix, prefix_mask, shift, digit_mask);
    });
    Histogram histogram{};
    for (const Histogram& own : histograms) {
      std::transform(own.begin(), own.end(), histogram.begin(), histogram.begin(), std::plus<>());
    }
    add_up(std::span(histogram).first(digit_mask + 1));
    std::uint32_t digit = digit_mask;
    while (static_cast<std::uint64_t>(histogram[digit]) < count) {
      count -= static_cast<std::uint64_t>(histogram[digit--]);
    }
    prefix |= digit << shift;
    prefix_mask |= digit_mask << shift;
  }
  return {.value = from_ordered(prefix), .num_wanted = count};
}

}  // namespace tamis::detail
