// Products of a share and a count, as a person means them.
#pragma once

#include <cmath>
#include <cstdint>

namespace tamis::detail {

// floor(share * count), where share is a decimal number that binary cannot hold: (1 - 0.9) * 10 is
// 1, not 0.9999999999999998. The slack is the rounding error of share and of the product.
inline std::uint64_t floor_share(double share, std::uint64_t count) {
  const auto n = static_cast<double>(count);
  return static_cast<std::uint64_t>(std::floor(share * n + n * 0x1p-51));
}

}  // namespace tamis::detail
