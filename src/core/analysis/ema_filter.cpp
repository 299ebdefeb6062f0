// Section "EMA as a Filtering Mechanism" of the paper.
#include "tamis/analysis/ema_filter.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tamis::analysis {
namespace {

// Half of w, reduced to one period first: a large frequency would cost the angle its last digits.
double half_angle(double frequency) {
  detail::require(std::isfinite(frequency), "EmaFilter", "frequency", "a finite number", frequency);
  return std::numbers::pi * std::remainder(frequency, 1.0);
}

}  // namespace

EmaFilter::EmaFilter(double alpha) : alpha_(alpha) {
  detail::require(alpha >= 0.0 && alpha < 1.0, "EmaFilter", "alpha", "in [0, 1)", alpha);
}

std::vector<double> EmaFilter::impulse_response(std::size_t length) const {
  std::vector<double> response(length);
  for (std::size_t n = 0; n < length; ++n) {
    response[n] = (1.0 - alpha_) * std::pow(alpha_, static_cast<double>(n));
  }
  return response;
}

std::complex<double> EmaFilter::response(double frequency) const {
  const double half = half_angle(frequency);
  // 1 - a e^{-jw} with 1 - cos w = 2 sin^2(w/2): exact near w = 0 for alpha near 1.
  const double sine = std::sin(half);
  const std::complex<double> denominator(1.0 - alpha_ + 2.0 * alpha_ * sine * sine,
                                         2.0 * alpha_ * sine * std::cos(half));
  return (1.0 - alpha_) / denominator;
}

double EmaFilter::gain(double frequency) const {
  // 1 - 2a cos w + a^2 = (1-a)^2 + 4a sin^2(w/2), without the cancellation.
  const double sine = std::sin(half_angle(frequency));
  return (1.0 - alpha_) / std::hypot(1.0 - alpha_, 2.0 * std::sqrt(alpha_) * sine);
}

std::optional<double> EmaFilter::cutoff() const {
  // Half the power: 4a sin^2(w/2) = (1-a)^2.
  if (alpha_ == 0.0) return std::nullopt;
  const double sine = (1.0 - alpha_) / (2.0 * std::sqrt(alpha_));
  if (sine > 1.0) return std::nullopt;
  return std::asin(sine) / std::numbers::pi;
}

std::vector<double> EmaFilter::apply(std::span<const double> series, double initial) const {
  std::vector<double> output;
  output.reserve(series.size());
  double state = initial;
  for (const double value : series) {
    state = alpha_ * state + (1.0 - alpha_) * value;
    output.push_back(state);
  }
  return output;
}

}  // namespace tamis::analysis
