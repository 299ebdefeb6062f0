#include "core/policies/score_statistics.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/multiversion.h"

namespace tamis::detail {

namespace {

// Four scores in one register. Vector types because g++ 12 does not vectorise the plain loop.
using Floats = float __attribute__((vector_size(16)));
using Ints = std::int32_t __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(32)));
using UnalignedFloats = float __attribute__((vector_size(16), aligned(4), may_alias));

// Independent sums in a fixed order: enough to keep the adders busy, few enough for the registers.
constexpr std::size_t kRegisters = 4;
constexpr std::size_t kLanes = 4 * kRegisters;

struct Lanes {
  std::array<Doubles, kRegisters> sum{};
  std::array<Ints, kRegisters> count{};
  std::array<Floats, kRegisters> min;
  std::array<Floats, kRegisters> max;
};

// Requires: n is a multiple of kLanes and n / kLanes < 2^31.
TAMIS_MULTIVERSION
void accumulate(const float* scores, std::size_t n, Lanes* lanes) {
  Lanes total = *lanes;
  for (std::size_t i = 0; i < n; i += kLanes) {
    for (std::size_t r = 0; r < kRegisters; ++r) {
      const Floats score = *reinterpret_cast<const UnalignedFloats*>(scores + i + 4 * r);
      const Ints is_number =
          score == score;  // all bits set, or none; NOLINT(misc-redundant-expression)
      const auto zero_if_nan = (Floats)((Ints)score & is_number);
      total.sum[r] += __builtin_convertvector(zero_if_nan, Doubles);
      total.count[r] -= is_number;
      total.min[r] = score < total.min[r] ? score : total.min[r];
      total.max[r] = score > total.max[r] ? score : total.max[r];
    }
  }
  *lanes = total;
}

}  // namespace

ScoreStatistics score_statistics(std::span<const float> scores) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Lanes lanes;
  lanes.min.fill(Floats{} + kInfinity);
  lanes.max.fill(Floats{} - kInfinity);
  const std::size_t whole = scores.size() / kLanes * kLanes;
  accumulate(scores.data(), whole, &lanes);
  std::array<float, kLanes> rest;
  rest.fill(std::numeric_limits<float>::quiet_NaN());
  std::copy(scores.begin() + static_cast<std::ptrdiff_t>(whole), scores.end(), rest.begin());
  accumulate(rest.data(), kLanes, &lanes);

  ScoreStatistics result{.min = kInfinity, .max = -kInfinity};
  double sum = 0.0;
  for (std::size_t r = 0; r < kRegisters; ++r) {
    for (std::size_t k = 0; k < 4; ++k) {
      sum += lanes.sum[r][k];
      result.num_scored += static_cast<std::size_t>(lanes.count[r][k]);
      result.min = std::min(result.min, lanes.min[r][k]);
      result.max = std::max(result.max, lanes.max[r][k]);
    }
  }
  if (result.num_scored == 0) return {};
  // Rounding could push the mean of equal scores past them, and then every sample would lie below.
  result.mean = std::clamp(sum / static_cast<double>(result.num_scored),
                           static_cast<double>(result.min), static_cast<double>(result.max));
  return result;
}

}  // namespace tamis::detail
