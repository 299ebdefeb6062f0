// How much of a batch loss is about the sample, before and after the score's filter.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tamis/analysis/decomposition.h"

namespace tamis::analysis {

// Two ratios for one alpha; 1 means as much signal as noise. Both are power ratios, not decibels.
struct SignalToNoise {
  double alpha = 0.0;
  // Along the time of a sample, as in the paper: signal and noise about their means over the
  // sample's visits, filtered; squares summed over all visits of all samples. A training run's
  // common downward trend is noise here, since most of it is the other samples' loss.
  double over_visits = 0.0;
  // From sample to sample, which is what a ranking sees: the variance over samples of the filtered
  // signal and of the filtered noise at each sample's last visit. The filter's weights are scaled
  // to a sum of 1, so that samples with few visits are comparable.
  double between_samples = 0.0;
};

// Measures the ratios for several alphas from any number of samples, in memory that depends on the
// number of alphas only. Not thread-safe.
class SignalToNoiseCurve {
 public:
  // Throws std::invalid_argument unless every alpha is in [0, 1).
  explicit SignalToNoiseCurve(std::span<const double> alphas);

  // Adds one sample's visits, given in order; a sample without visits changes nothing. Throws as
  // decompose() does, and then changes nothing.
  void add(std::span<const Visit> visits);

  std::size_t num_samples() const { return num_samples_; }

  // Without a filter, which is alpha = 0.
  SignalToNoise before() const { return ratios(0); }
  // With the filter, in the order of the alphas given. Infinite if only the noise is constant; NaN
  // if both are or with too few samples (none, or one between samples).
  std::vector<SignalToNoise> after() const;

 private:
  struct Moments {  // of one quantity over samples, updated as by Welford
    double mean = 0.0;
    double sum_of_squares = 0.0;

    void add(double value, double count);
  };
  struct Sums {
    double alpha = 0.0;
    double signal_over_visits = 0.0;
    double noise_over_visits = 0.0;
    Moments signal_between_samples = {};
    Moments noise_between_samples = {};
  };

  SignalToNoise ratios(std::size_t index) const;

  std::vector<Sums> sums_;  // the first for alpha = 0, then one per alpha given
  std::size_t num_samples_ = 0;
};

// The alpha with the largest ratio of the given kind, the smallest such alpha if several tie;
// ratios that are NaN do not count. Nothing if none is left.
//   best_alpha(curve.after(), &SignalToNoise::between_samples)
std::optional<double> best_alpha(std::span<const SignalToNoise> ratios,
                                 double SignalToNoise::*kind);

}  // namespace tamis::analysis
