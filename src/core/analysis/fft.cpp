// Radix-2 (Cooley and Tukey, 1965) for powers of two; any other length becomes a convolution of
// such a length (Bluestein, 1970).
#include "core/analysis/fft.h"

#include <bit>
#include <cstdint>
#include <numbers>
#include <utility>

namespace tamis::detail {
namespace {

using Complex = std::complex<double>;

// std::complex's product also handles infinities, at several times the cost.
Complex multiply(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// e^{-2 pi j numerator / denominator}
Complex unit_root(std::uint64_t numerator, std::uint64_t denominator) {
  return std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(numerator) /
                             static_cast<double>(denominator));
}

}  // namespace

Fft::Fft(std::size_t length) : length_(length) {
  if (std::has_single_bit(length)) {
    twiddles_.reserve(length / 2);
    for (std::size_t k = 0; k < length / 2; ++k) twiddles_.push_back(unit_root(k, length));
    return;
  }
  convolution_ = std::make_unique<const Fft>(std::bit_ceil(2 * length - 1));
  kernel_spectrum_.resize(convolution_->length());
  chirp_.reserve(length);
  for (std::uint64_t k = 0; k < length; ++k) {
    // Reduced before the division by 2 length: k^2 itself would cost the angle its last digits.
    chirp_.push_back(unit_root(k * k % (2 * length), 2 * length));
    kernel_spectrum_[k] = std::conj(chirp_[k]);
    if (k > 0) kernel_spectrum_[kernel_spectrum_.size() - k] = kernel_spectrum_[k];
  }
  convolution_->forward_power_of_two(kernel_spectrum_);
  // The scale of the inverse transform.
  for (Complex& value : kernel_spectrum_) value /= static_cast<double>(kernel_spectrum_.size());
}

void Fft::forward(std::span<Complex> data, std::vector<Complex>& scratch) const {
  if (convolution_) {
    forward_bluestein(data, scratch);
  } else {
    forward_power_of_two(data);
  }
}

void Fft::forward_power_of_two(std::span<Complex> data) const {
  const std::size_t n = length_;
  for (std::size_t i = 1, reversed = 0; i < n; ++i) {
    std::size_t bit = n >> 1U;
    for (; (reversed & bit) != 0; bit >>= 1U) reversed ^= bit;
    reversed ^= bit;
    if (i < reversed) std::swap(data[i], data[reversed]);
  }
  for (std::size_t half = 1; half < n; half *= 2) {
    const std::size_t stride = n / (2 * half);
    for (std::size_t begin = 0; begin < n; begin += 2 * half) {
      for (std::size_t k = 0; k < half; ++k) {
        const Complex even = data[begin + k];
        const Complex odd = multiply(data[begin + k + half], twiddles_[k * stride]);
        data[begin + k] = even + odd;
        data[begin + k + half] = even - odd;
      }
    }
  }
}

// k n = (k^2 + n^2 - (k - n)^2) / 2 turns the sum into chirp[k] * ((x chirp) convolved with the
// conjugate chirp)[k].
void Fft::forward_bluestein(std::span<Complex> data, std::vector<Complex>& scratch) const {
  scratch.assign(convolution_->length(), Complex{});
  for (std::size_t k = 0; k < length_; ++k) scratch[k] = multiply(data[k], chirp_[k]);
  convolution_->forward_power_of_two(scratch);
  // Conjugated on the way in and out, the forward transform is the inverse one.
  for (std::size_t k = 0; k < scratch.size(); ++k) {
    scratch[k] = std::conj(multiply(scratch[k], kernel_spectrum_[k]));
  }
  convolution_->forward_power_of_two(scratch);
  for (std::size_t k = 0; k < length_; ++k) {
    data[k] = multiply(std::conj(scratch[k]), chirp_[k]);
  }
}

}  // namespace tamis::detail
