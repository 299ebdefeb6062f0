// Section "EMA as a Filtering Mechanism" of the paper.
#include "tamis/analysis/ema_filter.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tamis::analysis {

EmaFilter::EmaFilter(double alpha) : alpha_(alpha) {
  detail::require(alpha >= 0.0 && alpha < 1.0, "EmaFilter", "alpha", "in [0, 1)", alpha);
}

std::optional<double> EmaFilter::cutoff() const {
  // Half the power of |H| = (1-a) / sqrt((1-a)^2 + 4a sin^2(w/2)): 4a sin^2(w/2) = (1-a)^2.
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
