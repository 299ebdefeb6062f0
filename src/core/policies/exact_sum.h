// The sum of scores without any rounding: whole numbers that ranks can add up in any order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tamis::detail {

// A multiple of 2^-149, of which every float is one, in digits of 32 bits, the lowest first. The
// digits of up to 2^31 sums can be added one by one before carry() must be called.
class ExactSum {
 public:
  static constexpr std::size_t kDigits = 10;

  // Adds all scores that are numbers. Requires: these are finite and fewer than 2^38.
  void add(std::span<const float> scores);

  void add(const ExactSum& other);

  // Brings every digit but the last into [0, 2^32); the last one has the sign.
  void carry();

  // The sum divided by `count`, rounded once to the nearest double. Requires: carry() was called,
  // count > 0.
  double divided_by(std::uint64_t count) const;

  std::span<std::int64_t> digits() { return digits_; }

 private:
  std::array<std::int64_t, kDigits> digits_{};
};

}  // namespace tamis::detail
