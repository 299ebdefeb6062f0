// Discrete Fourier transform of any length.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace tamis::detail {

// X[k] = sum over n of x[n] e^{-2 pi j k n / length}. Tables for one length; immutable, so safe to
// use from several threads. O(length log length) for every length, primes included.
class Fft {
 public:
  // Requires: length >= 1.
  explicit Fft(std::size_t length);

  std::size_t length() const { return length_; }

  // In place. Requires: data.size() == length(). `scratch` is resized as needed.
  void forward(std::span<std::complex<double>> data,
               std::vector<std::complex<double>>& scratch) const;

 private:
  void forward_power_of_two(std::span<std::complex<double>> data) const;
  void forward_bluestein(std::span<std::complex<double>> data,
                         std::vector<std::complex<double>>& scratch) const;

  std::size_t length_;
  std::vector<std::complex<double>> twiddles_;  // e^{-2 pi j k / length}, k < length / 2

  // For a length that is not a power of two.
  std::unique_ptr<const Fft> convolution_;             // a power of two, at least 2 * length - 1
  std::vector<std::complex<double>> chirp_;            // e^{-pi j k^2 / length}
  std::vector<std::complex<double>> kernel_spectrum_;  // of the conjugate chirp, over its length
};

}  // namespace tamis::detail
