// The paper claims that the filter raises the share of the signal but gives no figure for it; the
// two ratios measured here are ours.
#include "tamis/analysis/signal_to_noise.h"

#include <cmath>

#include "tamis/analysis/ema_filter.h"
#include "tamis/analysis/statistics.h"

namespace tamis::analysis {
namespace {

double sum_of_squared_deviations(std::span<const double> values) {
  const double center = mean(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - center) * (value - center);
  return sum;
}

// Filtered deviations from the mean. The filter starts at the mean, that is at 0: started at zero
// loss, the way up to the mean would swamp the variance.
double filtered_sum_of_squares(const EmaFilter& filter, std::span<const double> values) {
  const double center = mean(values);
  std::vector<double> deviations(values.begin(), values.end());
  for (double& value : deviations) value -= center;
  return sum_of_squared_deviations(filter.apply(deviations));
}

}  // namespace

SignalToNoiseCurve::SignalToNoiseCurve(std::span<const double> alphas) {
  sums_.push_back({.alpha = 0.0});
  for (const double alpha : alphas) sums_.push_back({.alpha = EmaFilter(alpha).alpha()});
}

void SignalToNoiseCurve::Moments::add(double value, double count) {
  const double deviation = value - mean;
  mean += deviation / count;
  sum_of_squares += deviation * (value - mean);
}

void SignalToNoiseCurve::add(std::span<const Visit> visits) {
  if (visits.empty()) return;
  const SignalAndNoise parts = split_visits(visits);
  ++num_samples_;
  for (Sums& sums : sums_) {
    const EmaFilter filter(sums.alpha);
    sums.signal_over_visits += filtered_sum_of_squares(filter, parts.signal);
    sums.noise_over_visits += filtered_sum_of_squares(filter, parts.noise);
    const double sum_of_weights = 1.0 - std::pow(sums.alpha, static_cast<double>(visits.size()));
    const auto count = static_cast<double>(num_samples_);
    sums.signal_between_samples.add(filter.apply(parts.signal).back() / sum_of_weights, count);
    sums.noise_between_samples.add(filter.apply(parts.noise).back() / sum_of_weights, count);
  }
}

SignalToNoise SignalToNoiseCurve::ratios(std::size_t index) const {
  const Sums& sums = sums_[index];
  return {.alpha = sums.alpha,
          .over_visits = sums.signal_over_visits / sums.noise_over_visits,
          .between_samples = sums.signal_between_samples.sum_of_squares /
                             sums.noise_between_samples.sum_of_squares};
}

std::vector<SignalToNoise> SignalToNoiseCurve::after() const {
  std::vector<SignalToNoise> result;
  for (std::size_t i = 1; i < sums_.size(); ++i) result.push_back(ratios(i));
  return result;
}

std::optional<double> best_alpha(std::span<const SignalToNoise> ratios,
                                 double SignalToNoise::*kind) {
  const SignalToNoise* best = nullptr;
  for (const SignalToNoise& candidate : ratios) {
    if (std::isnan(candidate.*kind)) continue;
    if (best == nullptr || candidate.*kind > best->*kind ||
        (candidate.*kind == best->*kind && candidate.alpha < best->alpha)) {
      best = &candidate;
    }
  }
  if (best == nullptr) return std::nullopt;
  return best->alpha;
}

}  // namespace tamis::analysis
