// Radix selection: three counting passes over the digits of the scores find the border exactly.
#include "core/policies/top_k.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/random/subset.h"
#include "core/policies/score_masks.h"

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

}  // namespace

ScoreBorder find_border(std::span<const float> scores, std::uint64_t count,
                        const std::function<void(std::span<std::int64_t>)>& add_up) {
  constexpr unsigned kDigitBits[] = {11, 11, 10};
  std::uint32_t prefix = 0;
  std::uint32_t prefix_mask = 0;
  unsigned shift = 32;
  for (const unsigned bits : kDigitBits) {
    shift -= bits;
    const std::uint32_t digit_mask = (1U << bits) - 1;
    std::array<std::int64_t, 2048> histogram{};
    for (const float score : scores) {
      if (std::isnan(score)) continue;
      const std::uint32_t key = to_ordered(score);
      if ((key & prefix_mask) == prefix) ++histogram[(key >> shift) & digit_mask];
    }
    if (add_up) add_up(std::span(histogram).first(digit_mask + 1));
    std::uint32_t digit = digit_mask;
    while (static_cast<std::uint64_t>(histogram[digit]) < count) {
      count -= static_cast<std::uint64_t>(histogram[digit--]);
    }
    prefix |= digit << shift;
    prefix_mask |= digit_mask << shift;
  }
  return {.value = from_ordered(prefix), .num_wanted = count};
}

Bitmap highest(std::span<const float> scores, std::size_t count, RandomStream& random) {
  if (count == 0) return Bitmap(scores.size());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const ScoreBorder border = find_border(scores, count);
  const Bitmap ties = within(scores, border.value, border.value);
  Bitmap result = choose(ties, ties.count(), border.num_wanted, random);
  result |= within(scores, std::nextafter(border.value, kInfinity), kInfinity);
  return result;
}

Bitmap unscored_then_highest(std::span<const float> scores, std::size_t count,
                             RandomStream& random) {
  Bitmap unscored(scores.size(), true);
  unscored -= scored(scores);
  const std::size_t num_unscored = unscored.count();
  if (num_unscored >= count) return choose(unscored, num_unscored, count, random);
  unscored |= highest(scores, count - num_unscored, random);
  return unscored;
}

}  // namespace tamis::detail
