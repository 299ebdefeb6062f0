#include "detail/score_statistics.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "detail/multiversion.h"

namespace winnow::detail {

namespace {

// Independent sums: enough to keep the adders busy, and a fixed order of summation.
constexpr std::size_t kLanes = 32;

struct Lanes {
  std::array<double, kLanes> sum{};
  std::array<std::uint32_t, kLanes> count{};
  std::array<float, kLanes> min;
  std::array<float, kLanes> max;
};

// Requires: n is a multiple of kLanes and n / kLanes < 2^32.
WINNOW_MULTIVERSION
void accumulate(const float* scores, std::size_t n, Lanes* lanes) {
  Lanes total = *lanes;
  for (std::size_t i = 0; i < n; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const float score = scores[i + k];
      total.sum[k] += score == score ? static_cast<double>(score) : 0.0;
      total.count[k] += static_cast<std::uint32_t>(score == score);
      total.min[k] = score < total.min[k] ? score : total.min[k];
      total.max[k] = score > total.max[k] ? score : total.max[k];
    }
  }
  *lanes = total;
}

}  // namespace

ScoreStatistics score_statistics(std::span<const float> scores) {
  Lanes lanes;
  lanes.min.fill(std::numeric_limits<float>::infinity());
  lanes.max.fill(-std::numeric_limits<float>::infinity());
  const std::size_t whole = scores.size() / kLanes * kLanes;
  accumulate(scores.data(), whole, &lanes);
  std::array<float, kLanes> rest;
  rest.fill(std::numeric_limits<float>::quiet_NaN());
  std::copy(scores.begin() + static_cast<std::ptrdiff_t>(whole), scores.end(), rest.begin());
  accumulate(rest.data(), kLanes, &lanes);

  ScoreStatistics result;
  double sum = 0.0;
  for (std::size_t k = 0; k < kLanes; ++k) {
    sum += lanes.sum[k];
    result.num_scored += lanes.count[k];
  }
  if (result.num_scored == 0) return result;
  result.min = *std::min_element(lanes.min.begin(), lanes.min.end());
  result.max = *std::max_element(lanes.max.begin(), lanes.max.end());
  // Rounding could push the mean of equal scores past them, and then every sample would lie below.
  result.mean = std::clamp(sum / static_cast<double>(result.num_scored),
                           static_cast<double>(result.min), static_cast<double>(result.max));
  return result;
}

}  // namespace winnow::detail
