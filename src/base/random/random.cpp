#include "base/random/random.h"

#include <algorithm>

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
