// Positions of the set bits of each byte, for handling eight at a time.
#pragma once

#include <cstdint>

namespace tamis::detail {

struct BytePositions {
  alignas(32) std::uint32_t table[256][8] = {};
  std::uint8_t count[256] = {};

  constexpr BytePositions() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (((byte >> bit) & 1U) != 0) table[byte][count[byte]++] = bit;
      }
    }
  }
};

inline constexpr BytePositions kBytePositions;

}  // namespace tamis::detail
