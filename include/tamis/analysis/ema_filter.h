// EmaFilter: the exponential moving average of the batch loss score, seen as a low-pass filter.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace tamis::analysis {

// y[k] = a y[k-1] + (1-a) x[k], one step per visit of a sample. Frequencies are in cycles per
// visit: 0 is a constant, 0.5 (the highest there is) changes sign at every visit.
class EmaFilter {
 public:
  // Throws std::invalid_argument unless alpha is in [0, 1). 0 passes everything unchanged.
  explicit EmaFilter(double alpha);

  double alpha() const { return alpha_; }

  // The frequency in (0, 0.5] at which half the power is left (gain 1/sqrt 2, -3 dB):
  // asin((1-a) / (2 sqrt a)) / pi. Nothing if alpha is below 3 - 2 sqrt 2 = 0.1716: such a filter
  // passes more than half the power of every frequency.
  std::optional<double> cutoff() const;

  // Output for the whole series; `initial` is y before the first value.
  std::vector<double> apply(std::span<const double> series, double initial = 0.0) const;

 private:
  double alpha_;
};

}  // namespace tamis::analysis
