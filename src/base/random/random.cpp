#include "base/random/random.h"

#include <algorithm>
#include <bit>

#include "base/simd/kernels.h"

namespace tamis::detail {

namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// Polynomials of a degree below 256 over the field of two elements, lowest coefficients first.
using Polynomial = std::array<std::uint64_t, 4>;

// The characteristic polynomial of xoshiro256's linear step, without x^256.
constexpr Polynomial kCharacteristic = {0x9d116f2bb0f0f001U, 0x0280002bcefd1a5eU,
                                        0x04b4edcf26259f85U, 0x0003c03c3f3ecb19U};

bool coefficient(const Polynomial& p, unsigned power) {
  return ((p[power / 64] >> (power % 64)) & 1U) != 0;
}

// x p, reduced.
Polynomial times_x(const Polynomial& p) {
  Polynomial result{};
  for (std::size_t w = 0; w < 4; ++w) {
    result[w] = (p[w] << 1U) | (w > 0 ? p[w - 1] >> 63U : 0);
    if (coefficient(p, 255)) result[w] ^= kCharacteristic[w];
  }
  return result;
}

Polynomial square(const Polynomial& p) {
  Polynomial result{};
  for (unsigned power = 256; power-- > 0;) {
    result = times_x(times_x(result));
    result[0] ^= static_cast<std::uint64_t>(coefficient(p, power));
  }
  return result;
}

// x^exponent, reduced: what that many steps do to a state.
Polynomial power_of_x(std::uint64_t exponent) {
  Polynomial result = {1, 0, 0, 0};
  for (int bit = 64 - std::countl_zero(exponent); bit-- > 0;) {
    result = square(result);
    if (((exponent >> static_cast<unsigned>(bit)) & 1U) != 0) result = times_x(result);
  }
  return result;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t epoch, Purpose purpose) {
  // A chain of hashes: streams that differ in one part only have nothing in common.
  std::uint64_t mix = seed;
  mix = splitmix64(mix) ^ epoch;
  mix = splitmix64(mix) ^ static_cast<std::uint64_t>(purpose);
  for (auto& words : state_) {
    for (auto& word : words) word = splitmix64(mix);
  }
}

void RandomStream::refill() {
  kernels().make_random(state_[0].data(), block_.data(), kBlock);
  used_ = 0;
  ++num_blocks_;
}

void RandomStream::skip(std::uint64_t count) {
  const std::uint64_t num_left = kBlock - used_;
  if (count <= num_left) {
    used_ += static_cast<std::size_t>(count);
    return;
  }
  count -= num_left;
  used_ = kBlock;
  const std::uint64_t num_whole = count / kBlock;
  if (num_whole > 0) skip_steps(num_whole * (kBlock / kLanes));
  num_blocks_ += num_whole;
  if (count % kBlock == 0) return;
  refill();
  used_ = static_cast<std::size_t>(count % kBlock);
}

// Every step is linear, so many at once are a sum of the next 256 states.
void RandomStream::skip_steps(std::uint64_t count) {
  const Polynomial jump = power_of_x(count);
  std::array<std::array<std::uint64_t, kLanes>, 4> sum{};
  alignas(64) std::array<std::uint64_t, kLanes> unused;
  for (unsigned power = 0; power < 256; ++power) {
    for (std::size_t w = 0; w < 4 && coefficient(jump, power); ++w) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) sum[w][lane] ^= state_[w][lane];
    }
    kernels().make_random(state_[0].data(), unused.data(), kLanes);
  }
  state_ = sum;
}

void RandomStream::take(std::span<std::uint64_t> numbers) {
  while (!numbers.empty()) {
    if (used_ == kBlock) refill();
    const std::size_t count = std::min(numbers.size(), kBlock - used_);
    std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(used_), count, numbers.begin());
    used_ += count;
    numbers = numbers.subspan(count);
  }
}

}  // namespace tamis::detail
