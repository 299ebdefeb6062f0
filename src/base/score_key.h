// Scores as integers in the same order.
#pragma once

#include <cstdint>

namespace tamis::detail {

// Finite scores as integers in the same order; -0 and 0 are both 0. Between two multiples of 2^23
// equal steps of the key are equal steps of the score.
using ScoreKey = std::int32_t;

// Always inlined: a kernel must not leave a copy with its instructions behind.
[[gnu::always_inline]] inline ScoreKey key_of(float score) {
  const auto bits = __builtin_bit_cast(std::int32_t, score);
  const std::int32_t sign = bits >> 31;
  return (bits ^ (sign & 0x7FFFFFFF)) - sign;
}

}  // namespace tamis::detail
