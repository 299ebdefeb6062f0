#include "program/analyze/signal_analysis.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "tamis/analysis/ema_filter.h"
#include "tamis/analysis/welch.h"

namespace tamis::program {

namespace {

using analysis::Visit;

// A power of two, so that the transform is the fast one; half the visits at most where there are
// enough, so that several segments are averaged.
std::size_t segment_length(std::size_t most_visits) {
  constexpr std::size_t kLongest = 256;
  return std::clamp(std::bit_floor(most_visits / 2), kLeastVisits, kLongest);
}

SpectrumAnalysis analyze_spectra(const RecordedVisits& all, double alpha) {
  SpectrumAnalysis result{.segment_length = segment_length(all.most_visits)};
  const analysis::WelchPlan plan(result.segment_length);
  analysis::SpectrumMean signal(plan);
  analysis::SpectrumMean noise(plan);
  for (std::size_t place = 0; place < all.visits.size(); ++place) {
    if (!all.is_complete[place] || all.visits[place].size() < result.segment_length) continue;
    const analysis::SignalAndNoise parts = analysis::split_visits(all.visits[place]);
    signal.add(parts.signal);
    noise.add(parts.noise);
  }
  result.num_samples = signal.num_series();
  result.signal = signal.mean();
  result.noise = noise.mean();
  // A filter without a cut-off passes everything.
  result.cutoff = analysis::EmaFilter(alpha).cutoff().value_or(0.5);
  result.signal_energy = analysis::split_energy(result.signal, result.cutoff);
  result.noise_energy = analysis::split_energy(result.noise, result.cutoff);
  // Without frequency 0: every segment's mean was taken away.
  for (std::size_t k = 1; k < result.signal.density.size(); ++k) {
    if (result.noise.density[k] > result.signal.density[k]) ++result.num_noise_above;
  }
  return result;
}

double mean_own_loss(const std::vector<Visit>& visits) {
  double sum = 0.0;
  for (const Visit& visit : visits) sum += visit.sample_loss;
  return sum / static_cast<double>(visits.size());
}

}  // namespace

std::vector<double> analyzed_alphas() {
  return {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99};
}

SignalAnalysis analyze_signal(const RecordedVisits& visits, double alpha) {
  SignalAnalysis result{.alpha = alpha, .spectra = analyze_spectra(visits, alpha)};
  analysis::SignalToNoiseCurve curve(analyzed_alphas());
  for (std::size_t place = 0; place < visits.visits.size(); ++place) {
    if (visits.is_complete[place]) curve.add(visits.visits[place]);
  }
  result.num_samples = curve.num_samples();
  result.before = curve.before();
  result.after = curve.after();
  using analysis::SignalToNoise;
  result.best_over_visits = best_alpha(result.after, &SignalToNoise::over_visits);
  result.best_between_samples = best_alpha(result.after, &SignalToNoise::between_samples);
  return result;
}

DecompositionCheck check_decomposition(const RecordedVisits& visits, double alpha,
                                       double initial_score, const std::vector<float>& scores) {
  DecompositionCheck check;
  for (std::size_t place = 0; place < scores.size(); ++place) {
    if (!visits.is_complete[place]) continue;
    const auto score = static_cast<double>(scores[place]);
    const double sum =
        sum_of_parts(analysis::decompose(visits.visits[place], alpha, initial_score)).back();
    // Not std::max, which would let a NaN pass.
    const double error = std::abs(sum - score) / std::abs(score);
    if (!(error <= check.largest_error)) check.largest_error = error;
    ++check.num_samples;
  }
  return check;
}

std::size_t typical_sample(const RecordedVisits& visits) {
  std::vector<std::pair<double, std::size_t>> means;
  for (std::size_t place = 0; place < visits.visits.size(); ++place) {
    if (!visits.is_complete[place] || visits.visits[place].size() < visits.most_visits) continue;
    means.emplace_back(mean_own_loss(visits.visits[place]), place);
  }
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>(means.size() / 2);
  std::nth_element(means.begin(), middle, means.end());
  return middle->second;
}

}  // namespace tamis::program
