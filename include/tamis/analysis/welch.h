// Welch's method: the power spectral density of a series, with the conventions of
// scipy.signal.welch.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tamis/analysis/spectrum.h"

namespace tamis::detail {
class Fft;
}

namespace tamis::analysis {

// Periodic Hann window, half-overlapping segments, each segment's mean removed, density scaling,
// one-sided, mean over the segments; values past the last full segment are not used.
//
// Window and transform for one segment length, to be used for many series. Immutable: safe to use
// from several threads. O(n log n) in the length of a series, whatever the segment length.
class WelchPlan {
 public:
  // Throws std::invalid_argument unless the length, scipy's nperseg, is at least 1.
  explicit WelchPlan(std::size_t segment_length);
  WelchPlan(WelchPlan&&) noexcept;
  WelchPlan& operator=(WelchPlan&&) noexcept;
  ~WelchPlan();

  std::size_t segment_length() const { return window_.size(); }
  std::size_t num_bins() const { return window_.size() / 2 + 1; }

  // Throws std::invalid_argument if the series is shorter than a segment or not finite throughout.
  Spectrum spectrum(std::span<const double> series) const;

 private:
  std::vector<double> window_;
  double scale_ = 1.0;  // 1 / sum of squares of the window
  std::unique_ptr<const detail::Fft> fft_;
};

// The mean spectrum of many series, in the memory of one. Not thread-safe. Refers to `plan`.
class SpectrumMean {
 public:
  explicit SpectrumMean(const WelchPlan& plan) : plan_(&plan), sum_(plan.num_bins(), 0.0) {}

  // Throws as WelchPlan::spectrum does, and then leaves the mean as it was: a series too short for
  // the plan has no spectrum at the plan's frequencies, so the caller decides what becomes of it.
  void add(std::span<const double> series);

  std::size_t num_series() const { return num_series_; }
  // Densities are NaN if nothing was added.
  Spectrum mean() const;

 private:
  const WelchPlan* plan_;
  std::vector<double> sum_;
  std::size_t num_series_ = 0;
};

}  // namespace tamis::analysis
