// EmaFilter: the exponential moving average of the batch loss score, seen as a low-pass filter.
#pragma once

#include <complex>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tamis::analysis {

// y[k] = a y[k-1] + (1-a) x[k], one step per visit of a sample. Frequencies are in cycles per
// visit: 0 is a constant, 0.5 (the highest there is) changes sign at every visit. w = 2 pi
// frequency.
class EmaFilter {
 public:
  // Throws std::invalid_argument unless alpha is in [0, 1). 0 passes everything unchanged.
  explicit EmaFilter(double alpha);

  double alpha() const { return alpha_; }

  // h[n] = (1-a) a^n for n in [0, length): what one visit still counts n visits later.
  std::vector<double> impulse_response(std::size_t length) const;

  // H = (1-a) / (1 - a e^{-jw}); any finite frequency, with period 1.
  std::complex<double> response(double frequency) const;
  // |H| = (1-a) / sqrt(1 - 2a cos w + a^2), from 1 at 0 down to (1-a)/(1+a) at 0.5.
  double gain(double frequency) const;

  // The frequency in (0, 0.5] at which half the power is left (gain 1/sqrt 2, -3 dB):
  // asin((1-a) / (2 sqrt a)) / pi. Nothing if alpha is below 3 - 2 sqrt 2 = 0.1716: such a filter
  // passes more than half the power of every frequency.
  std::optional<double> cutoff() const;

  // (1-a)/(1+a): what the filter leaves of the variance of white noise.
  double noise_variance_factor() const { return (1.0 - alpha_) / (1.0 + alpha_); }

  // Output for the whole series; `initial` is y before the first value.
  std::vector<double> apply(std::span<const double> series, double initial = 0.0) const;

 private:
  double alpha_;
};

}  // namespace tamis::analysis
