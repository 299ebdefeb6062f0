#include "core/policies/exact_sum.h"

#include <bit>
#include <cmath>

namespace tamis::detail {

namespace {

constexpr unsigned kDigitBits = 32;
constexpr std::int64_t kDigitMask = 0xFFFFFFFF;

}  // namespace

void ExactSum::add(std::span<const float> scores) {
  // First by exponent: one addition per score.
  std::array<std::int64_t, 256> mantissas{};
  for (const float score : scores) {
    if (score != score) continue;
    const auto bits = std::bit_cast<std::uint32_t>(score);
    const std::uint32_t exponent = (bits >> 23U) & 255U;
    const auto mantissa =
        static_cast<std::int64_t>((bits & 0x7FFFFFU) | (exponent > 0 ? 0x800000U : 0U));
    mantissas[exponent] += (bits >> 31U) != 0 ? -mantissa : mantissa;
  }
  for (std::size_t exponent = 0; exponent < mantissas.size(); ++exponent) {
    // Exponents 0 and 1 both count multiples of 2^-149.
    const std::size_t shift = exponent > 0 ? exponent - 1 : 0;
    const std::size_t digit = shift / kDigitBits;
    const __int128 term = static_cast<__int128>(mantissas[exponent]) << (shift % kDigitBits);
    if (term == 0) continue;
    digits_[digit] += static_cast<std::int64_t>(term) & kDigitMask;
    digits_[digit + 1] += static_cast<std::int64_t>(term >> kDigitBits) & kDigitMask;
    digits_[digit + 2] += static_cast<std::int64_t>(term >> (2 * kDigitBits));
  }
  carry();
}

void ExactSum::add(const ExactSum& other) {
  for (std::size_t d = 0; d < kDigits; ++d) digits_[d] += other.digits_[d];
  carry();
}

void ExactSum::carry() {
  for (std::size_t d = 0; d + 1 < kDigits; ++d) {
    digits_[d + 1] += digits_[d] >> kDigitBits;
    digits_[d] &= kDigitMask;
  }
}

double ExactSum::divided_by(std::uint64_t count) const {
  ExactSum magnitude = *this;
  const bool is_negative = digits_.back() < 0;
  if (is_negative) {
    for (std::int64_t& digit : magnitude.digits_) digit = -digit;
    magnitude.carry();
  }
  // Two digits below 2^-149 are enough for the rounding: no float is that small.
  constexpr std::size_t kLower = 2;
  std::array<std::uint64_t, kDigits + kLower> quotient{};
  unsigned __int128 rest = 0;
  for (std::size_t d = quotient.size(); d-- > 0;) {
    const std::int64_t next = d < kLower ? 0 : magnitude.digits_[d - kLower];
    rest = (rest << kDigitBits) | static_cast<std::uint64_t>(next);
    quotient[d] = static_cast<std::uint64_t>(rest / count);
    rest %= count;
  }
  // The first three digits that are not 0, cut to 62 bits, and one bit that says whether anything
  // follows: what the one rounding of the conversion needs.
  std::size_t lowest = quotient.size() - 1;
  while (lowest > 0 && quotient[lowest] == 0) --lowest;
  unsigned __int128 leading = quotient[lowest];
  for (int k = 0; k < 2 && lowest > 0; ++k) {
    leading = (leading << kDigitBits) | quotient[--lowest];
  }
  bool has_more = rest != 0;
  for (std::size_t d = 0; d < lowest; ++d) has_more = has_more || quotient[d] != 0;
  int shift = 0;
  for (; leading >> 62U != 0; ++shift, leading >>= 1U) has_more = has_more || (leading & 1U) != 0;
  const std::uint64_t mantissa =
      (static_cast<std::uint64_t>(leading) << 1U) | static_cast<std::uint64_t>(has_more);
  const int digits_above = static_cast<int>(lowest) - static_cast<int>(kLower);
  const int exponent = shift - 1 + static_cast<int>(kDigitBits) * digits_above - 149;
  const double value = std::ldexp(static_cast<double>(mantissa), exponent);
  return is_negative ? -value : value;
}

}  // namespace tamis::detail
