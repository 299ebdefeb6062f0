#include "base/random/random.h"

#include "base/multiversion.h"

namespace tamis::detail {

namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// Four lanes in one register; a vector type because g++ 12 does not vectorise the loop over an
// array.
using Lanes = std::uint64_t __attribute__((vector_size(32), may_alias));
constexpr std::size_t kLanesPerRegister = 4;

struct Registers {
  Lanes a, b, c, d;
};

// One step of xoshiro256++ in every lane. The result is not returned, because vectors have no
// common calling convention across the versions.
inline void step(Registers& s, Lanes& result) {
  const Lanes sum = s.a + s.d;
  result = ((sum << 23U) | (sum >> 41U)) + s.a;
  const Lanes shifted = s.b << 17U;
  s.c ^= s.a;
  s.d ^= s.b;
  s.b ^= s.c;
  s.a ^= s.d;
  s.c ^= shifted;
  s.d = (s.d << 45U) | (s.d >> 19U);
}

// `state` holds the four words of all eight lanes one after the other. Both arrays are aligned.
TAMIS_MULTIVERSION
void make_block(std::uint64_t* state, std::uint64_t* out, std::size_t num_numbers) {
  auto* words = reinterpret_cast<Lanes*>(state);
  Registers low{words[0], words[2], words[4], words[6]};
  Registers high{words[1], words[3], words[5], words[7]};
  auto* results = reinterpret_cast<Lanes*>(out);
  for (std::size_t i = 0; i < num_numbers / kLanesPerRegister; i += 2) {
    step(low, results[i]);
    step(high, results[i + 1]);
  }
  words[0] = low.a;
  words[1] = high.a;
  words[2] = low.b;
  words[3] = high.b;
  words[4] = low.c;
  words[5] = high.c;
  words[6] = low.d;
  words[7] = high.d;
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

}  // namespace tamis::detail
