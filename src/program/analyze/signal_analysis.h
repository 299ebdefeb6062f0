// Signal and noise in the batch losses of a recorded run.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "program/analyze/recorded_visits.h"
#include "tamis/analysis/decomposition.h"
#include "tamis/analysis/signal_to_noise.h"
#include "tamis/analysis/spectrum.h"

namespace tamis::program {

// Fewer visits than this have no spectrum worth the name.
inline constexpr std::size_t kLeastVisits = 8;

struct SpectrumAnalysis {
  std::size_t segment_length = 0;
  std::size_t num_samples = 0;     // with as many visits
  analysis::Spectrum signal = {};  // means over these samples
  analysis::Spectrum noise = {};
  double cutoff = 0.5;  // of the filter, cycles per visit
  analysis::EnergySplit signal_energy = {};
  analysis::EnergySplit noise_energy = {};
  // Of the frequencies above 0, those at which the noise is stronger than the signal.
  std::size_t num_noise_above = 0;

  std::size_t num_frequencies() const { return signal.density.size() - 1; }
  // Noise over signal at frequency k.
  double ratio(std::size_t k) const { return noise.density[k] / signal.density[k]; }
};

struct SignalAnalysis {
  double alpha = 0.0;
  std::size_t num_samples = 0;  // all of whose visits have a per-sample loss
  SpectrumAnalysis spectra = {};
  analysis::SignalToNoise before = {};
  std::vector<analysis::SignalToNoise> after = {};  // for alphas()
  std::optional<double> best_over_visits = std::nullopt;
  std::optional<double> best_between_samples = std::nullopt;
};

// The alphas that the ratios are measured for.
std::vector<double> analyzed_alphas();

// Requires: most_visits is at least kLeastVisits and a sample is complete.
SignalAnalysis analyze_signal(const RecordedVisits& visits, double alpha);

// The largest |sum of the parts - score| / |score| over the samples that are complete and scored:
// the paper's proposition on real data. `scores` are those of a batch loss score by place.
struct DecompositionCheck {
  std::size_t num_samples = 0;
  double largest_error = 0.0;
};
DecompositionCheck check_decomposition(const RecordedVisits& visits, double alpha,
                                       double initial_score, const std::vector<float>& scores);

// Place of the complete sample with the most visits whose mean loss is the median of these.
std::size_t typical_sample(const RecordedVisits& visits);

}  // namespace tamis::program
