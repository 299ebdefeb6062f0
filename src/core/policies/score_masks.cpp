#include "core/policies/score_masks.h"

#include <cmath>
#include <limits>

#include "base/simd/kernels.h"
#include "base/threads.h"

namespace tamis::detail {

Bitmap within(std::span<const float> scores, float low, float high) {
  Bitmap mask(scores.size());
  const std::size_t whole = scores.size() / 64;
  const Parts parts(whole, 1, kSamplesPerThread / 64);
  parts.run([&](std::size_t part) {
    const std::size_t begin = parts.begin(part);
    kernels().compare(scores.data() + begin * 64, parts.end(part) - begin, low, high,
                      mask.words().data() + begin);
  });
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
