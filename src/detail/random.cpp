#include "detail/random.h"

#include <cstring>

#include "detail/multiversion.h"

namespace winnow::detail {

namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// One register of eight lanes; a vector type because g++ 12 does not vectorise the loop over an
// array.
using Lanes = std::uint64_t __attribute__((vector_size(64)));

// `state` holds the four words of all lanes one after the other.
WINNOW_MULTIVERSION
void make_block(std::uint64_t* state, std::uint64_t* out, std::size_t num_numbers) {
  Lanes a;
  Lanes b;
  Lanes c;
  Lanes d;
  std::memcpy(&a, state, sizeof a);
  std::memcpy(&b, state + 8, sizeof b);
  std::memcpy(&c, state + 16, sizeof c);
  std::memcpy(&d, state + 24, sizeof d);
  for (std::size_t i = 0; i < num_numbers; i += 8) {
    const Lanes sum = a + d;
    const Lanes result = ((sum << 23U) | (sum >> 41U)) + a;
    std::memcpy(out + i, &result, sizeof result);
    const Lanes shifted = b << 17U;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 45U) | (d >> 19U);
  }
  std::memcpy(state, &a, sizeof a);
  std::memcpy(state + 8, &b, sizeof b);
  std::memcpy(state + 16, &c, sizeof c);
  std::memcpy(state + 24, &d, sizeof d);
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
  make_block(state_[0].data(), block_.data(), kBlock);
  used_ = 0;
}

}  // namespace winnow::detail
