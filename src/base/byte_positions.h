// Positions of the set bits of each byte, for handling eight at a time.
#pragma once

#include <array>
#include <cstddef>

namespace tamis::detail {

template <typename Position>
struct BytePositions {
  alignas(8 * sizeof(Position)) std::array<std::array<Position, 8>, 256> table{};

  constexpr BytePositions() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::size_t n = 0;
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (((byte >> bit) & 1U) != 0) table[byte][n++] = static_cast<Position>(bit);
      }
    }
  }
};

}  // namespace tamis::detail
