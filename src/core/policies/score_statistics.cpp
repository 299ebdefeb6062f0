#include "core/policies/score_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/simd/kernels.h"

namespace tamis::detail {

namespace {

// Rounding could push the mean of equal scores past them, and then every sample would lie below.
double clamp_to_scores(double mean, std::span<const float> scores) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double min = kInfinity;
  double max = -kInfinity;
  for (const float score : scores) {
    if (std::isnan(score)) continue;
    min = std::min(min, double{score});
    max = std::max(max, double{score});
    if (min <= mean && mean <= max) break;  // after the first few scores, unless all are equal
  }
  return std::clamp(mean, min, max);
}

}  // namespace

ScoreStatistics score_statistics(std::span<const float> scores) {
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> sums{};
  const std::size_t whole = scores.size() / kLanes * kLanes;
  std::size_t num_scored = kernels().add_scores(scores.data(), whole, sums.data());
  std::array<float, kLanes> rest;
  rest.fill(std::numeric_limits<float>::quiet_NaN());
  std::copy(scores.begin() + static_cast<std::ptrdiff_t>(whole), scores.end(), rest.begin());
  num_scored += kernels().add_scores(rest.data(), kLanes, sums.data());
  if (num_scored == 0) return {};

  double sum = 0.0;
  for (const double lane : sums) sum += lane;
  return {.num_scored = num_scored,
          .mean = clamp_to_scores(sum / static_cast<double>(num_scored), scores)};
}

}  // namespace tamis::detail
