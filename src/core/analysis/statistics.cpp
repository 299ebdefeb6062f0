#include "tamis/analysis/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tamis::analysis {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Continued fraction of the incomplete beta function, by Lentz's method. Converges fast for
// x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  constexpr int kMaxTerms = 100'000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1.0) < 1e-16) break;
  }
  return fraction;
}

// Regularised incomplete beta function I_x(a, b); y is 1 - x, given apart so that it keeps its
// digits.
double incomplete_beta(double x, double y, double a, double b) {
  if (x <= 0.0) return 0.0;
  if (y <= 0.0) return 1.0;
  const double log_front =
      std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y);
  const double front = std::exp(log_front);
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(x, a, b) / a;
  return 1.0 - front * beta_fraction(y, b, a) / b;
}

// Probability above t >= 0.
double student_t_tail(double t, double degrees_of_freedom) {
  // t^2 / (v + t^2) and its complement, written so that a huge t does not overflow.
  const double ratio = t / std::sqrt(degrees_of_freedom);
  const double x = 1.0 / (1.0 + ratio * ratio);
  const double y =
      ratio <= 1.0 ? ratio * ratio / (1.0 + ratio * ratio) : 1.0 / (1.0 + 1.0 / (ratio * ratio));
  return 0.5 * incomplete_beta(x, y, 0.5 * degrees_of_freedom, 0.5);
}

void require_finite_values(std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw std::invalid_argument(detail::concat("confidence_interval: values[", i,
                                                 "] must be a finite number, got ", values[i]));
    }
  }
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return std::nan("");
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nan("");
  const double center = mean(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double student_t_quantile(double probability, double degrees_of_freedom) {
  detail::require(probability > 0.0 && probability < 1.0, "student_t_quantile", "probability",
                  "in (0, 1)", probability);
  detail::require(degrees_of_freedom > 0.0 && std::isfinite(degrees_of_freedom),
                  "student_t_quantile", "degrees_of_freedom", "above 0 and finite",
                  degrees_of_freedom);
  if (probability == 0.5) return 0.0;
  const double tail = probability < 0.5 ? probability : 1.0 - probability;
  double low = 0.0;
  double high = 1.0;
  while (high < kInfinity && student_t_tail(high, degrees_of_freedom) > tail) {
    low = high;
    high *= 2.0;
  }
  // Bisection down to neighbouring numbers: about 60 steps, and nothing that could fail.
  for (double middle = 0.5 * (low + high); middle > low && middle < high;
       middle = 0.5 * (low + high)) {
    (student_t_tail(middle, degrees_of_freedom) > tail ? low : high) = middle;
  }
  return probability < 0.5 ? -high : high;
}

Interval confidence_interval(std::span<const double> values, double confidence,
                             double least_deviation) {
  detail::require(!values.empty(), "confidence_interval", "number of values", "at least 1",
                  values.size());
  detail::require(confidence > 0.0 && confidence < 1.0, "confidence_interval", "confidence",
                  "in (0, 1)", confidence);
  require_finite_values(values);
  const double center = mean(values);
  if (values.size() == 1) return {.mean = center, .low = -kInfinity, .high = kInfinity};
  const auto n = static_cast<double>(values.size());
  const double t = student_t_quantile(0.5 + 0.5 * confidence, n - 1.0);
  const double deviation = std::max(standard_deviation(values), least_deviation);
  const double half_width = t * deviation / std::sqrt(n);
  return {.mean = center, .low = center - half_width, .high = center + half_width};
}

Verdict judge_differences(std::span<const double> differences, double confidence,
                          double least_deviation) {
  const Interval interval = confidence_interval(differences, confidence, least_deviation);
  return {.num_pairs = differences.size(),
          .mean = interval.mean,
          .low = interval.low,
          .high = interval.high,
          .is_supported = interval.low > 0.0 || interval.high < 0.0};
}

}  // namespace tamis::analysis
