// P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra", 1967, with
// the defaults of scipy.signal.welch.
#include "tamis/analysis/welch.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/check.h"
#include "core/analysis/fft.h"

namespace tamis::analysis {
namespace {

void require_finite_series(std::span<const double> series) {
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (!std::isfinite(series[i])) {
      throw std::invalid_argument(
          detail::concat("Welch: series[", i, "] must be a finite number, got ", series[i]));
    }
  }
}

// One segment is its own window at length 1, as in scipy.
std::vector<double> hann_window(std::size_t length) {
  if (length == 1) return {1.0};
  std::vector<double> window(length);
  for (std::size_t i = 0; i < length; ++i) {
    const double phase =
        2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
    window[i] = 0.5 - 0.5 * std::cos(phase);
  }
  return window;
}

// All densities 0.
Spectrum empty_spectrum(std::size_t segment_length) {
  const auto length = static_cast<double>(segment_length);
  const std::size_t num_bins = segment_length / 2 + 1;
  Spectrum spectrum{.frequencies = std::vector<double>(num_bins),
                    .density = std::vector<double>(num_bins, 0.0),
                    .resolution = 1.0 / length};
  for (std::size_t k = 0; k < num_bins; ++k) {
    spectrum.frequencies[k] = static_cast<double>(k) / length;
  }
  return spectrum;
}

}  // namespace

WelchPlan::WelchPlan(std::size_t segment_length) {
  detail::require(segment_length >= 1, "Welch", "segment_length", "at least 1", segment_length);
  window_ = hann_window(segment_length);
  double sum_of_squares = 0.0;
  for (const double weight : window_) sum_of_squares += weight * weight;
  scale_ = 1.0 / sum_of_squares;
  fft_ = std::make_unique<const detail::Fft>(segment_length);
}

WelchPlan::WelchPlan(WelchPlan&&) noexcept = default;
WelchPlan& WelchPlan::operator=(WelchPlan&&) noexcept = default;
WelchPlan::~WelchPlan() = default;

Spectrum WelchPlan::spectrum(std::span<const double> series) const {
  const std::size_t length = segment_length();
  if (series.size() < length) {
    throw std::invalid_argument(detail::concat("Welch: series must be at least one segment of ",
                                               length, " values long, got ", series.size()));
  }
  require_finite_series(series);

  Spectrum result = empty_spectrum(length);
  std::vector<std::complex<double>> data(length);
  std::vector<std::complex<double>> scratch;
  const std::size_t step = length - length / 2;
  std::size_t num_segments = 0;
  for (std::size_t begin = 0; begin + length <= series.size(); begin += step) {
    const std::span<const double> segment = series.subspan(begin, length);
    const double mean =
        std::accumulate(segment.begin(), segment.end(), 0.0) / static_cast<double>(length);
    for (std::size_t i = 0; i < length; ++i) data[i] = (segment[i] - mean) * window_[i];
    fft_->forward(data, scratch);
    for (std::size_t k = 0; k < num_bins(); ++k) result.density[k] += std::norm(data[k]);
    ++num_segments;
  }

  const double scale = scale_ / static_cast<double>(num_segments);
  for (std::size_t k = 0; k < num_bins(); ++k) {
    // The negative frequencies are added to the positive ones; 0 and Nyquist have no twin.
    const bool has_twin = k > 0 && 2 * k < length;
    result.density[k] *= has_twin ? 2.0 * scale : scale;
  }
  return result;
}

void SpectrumMean::add(std::span<const double> series) {
  const Spectrum spectrum = plan_->spectrum(series);
  for (std::size_t k = 0; k < sum_.size(); ++k) sum_[k] += spectrum.density[k];
  ++num_series_;
}

Spectrum SpectrumMean::mean() const {
  Spectrum result = empty_spectrum(plan_->segment_length());
  for (std::size_t k = 0; k < sum_.size(); ++k) {
    result.density[k] = num_series_ > 0 ? sum_[k] / static_cast<double>(num_series_)
                                        : std::numeric_limits<double>::quiet_NaN();
  }
  return result;
}

}  // namespace tamis::analysis
