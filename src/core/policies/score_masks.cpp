#include "core/policies/score_masks.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/multiversion.h"

namespace tamis::detail {

namespace {

// Eight bytes of 0 or 1 to eight bits: the multiplication gathers them in the top byte.
inline std::uint64_t pack(std::uint64_t bytes) { return (bytes * 0x0102040810204080U) >> 56U; }

TAMIS_MULTIVERSION
void compare(const float* scores, std::size_t num_words, float low, float high,
             std::uint64_t* words) {
  for (std::size_t w = 0; w < num_words; ++w) {
    alignas(64) std::array<std::uint8_t, 64> flags;
    for (std::size_t k = 0; k < 64; ++k) {
      const float score = scores[w * 64 + k];
      flags[k] = static_cast<std::uint8_t>(static_cast<int>(score >= low) &
                                           static_cast<int>(score <= high));
    }
    std::uint64_t word = 0;
    for (std::size_t byte = 0; byte < 8; ++byte) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, flags.data() + byte * 8, sizeof eight);
      word |= pack(eight) << (byte * 8);
    }
    words[w] = word;
  }
}

}  // namespace

Bitmap within(std::span<const float> scores, float low, float high) {
  Bitmap mask(scores.size());
  const std::size_t whole = scores.size() / 64;
  compare(scores.data(), whole, low, high, mask.words().data());
  for (std::size_t i = whole * 64; i < scores.size(); ++i) {
    if (scores[i] >= low && scores[i] <= high) mask.set(i);
  }
  return mask;
}

Bitmap below(std::span<const float> scores, double threshold) {
  // The greatest float below the threshold makes the comparison of floats exact.
  auto high = static_cast<float>(threshold);
  if (static_cast<double>(high) >= threshold) {
    high = std::nextafter(high, -std::numeric_limits<float>::infinity());
  }
  return within(scores, -std::numeric_limits<float>::infinity(), high);
}

Bitmap scored(std::span<const float> scores) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return within(scores, -kInfinity, kInfinity);
}

}  // namespace tamis::detail
