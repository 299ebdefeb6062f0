// For every processor: SSE2 on x86-64, NEON on ARM.
#include "base/byte_positions.h"
#include "base/simd/versions.h"

namespace tamis::detail {

namespace {

constexpr std::size_t kRandomBytes = 16;

using FourFloats = float __attribute__((vector_size(16)));
using FourDoubles = double __attribute__((vector_size(32)));
inline void add_four(FourDoubles& sum, const FourFloats& floats) {
  sum += __builtin_convertvector(floats, FourDoubles);
}

// Plain x86-64 has no instruction for it, and this one the compiler vectorises.
inline std::size_t ones(std::uint64_t word) {
#ifdef __aarch64__
  return static_cast<std::size_t>(__builtin_popcountll(word));
#else
  word -= (word >> 1U) & 0x5555555555555555U;
  word = (word & 0x3333333333333333U) + ((word >> 2U) & 0x3333333333333333U);
  word = (word + (word >> 4U)) & 0x0f0f0f0f0f0f0f0fU;
  return static_cast<std::size_t>((word * 0x0101010101010101U) >> 56U);
#endif
}

inline std::size_t ones_of_byte(std::uint64_t byte) { return kBytePositions.count[byte]; }

bool make_offsets(const std::uint64_t* random, std::uint32_t bound, std::uint32_t* offsets) {
  constexpr std::uint64_t kLowHalf = 0xffffffffU;
  std::uint64_t suspicious = 0;
  for (std::uint32_t k = 0; k < 256; ++k) {
    const std::uint64_t low = (random[k] & kLowHalf) * (bound - k);
    const std::uint64_t high = (random[k] >> 32U) * (bound - 256 - k);
    offsets[2 * k] = static_cast<std::uint32_t>(low >> 32U);
    offsets[2 * k + 1] = static_cast<std::uint32_t>(high >> 32U);
    // The sign of the difference: below the bound means possibly biased.
    suspicious |= ((low & kLowHalf) - bound) | ((high & kLowHalf) - bound);
  }
  return (suspicious >> 63U) != 0;
}

// Eight bytes of 0 or 1 to eight bits: the multiplication gathers them in the top byte.
inline std::uint64_t pack(std::uint64_t bytes) { return (bytes * 0x0102040810204080U) >> 56U; }

void compare(const float* scores, std::size_t num_words, float low, float high,
             std::uint64_t* words) {
  for (std::size_t w = 0; w < num_words; ++w) {
    alignas(64) std::uint8_t flags[64];
    for (std::size_t k = 0; k < 64; ++k) {
      const float score = scores[w * 64 + k];
      flags[k] = static_cast<std::uint8_t>(static_cast<int>(score >= low) &
                                           static_cast<int>(score <= high));
    }
    std::uint64_t word = 0;
    for (std::size_t byte = 0; byte < 8; ++byte) {
      std::uint64_t eight = 0;
      __builtin_memcpy(&eight, flags + byte * 8, sizeof eight);
      word |= pack(eight) << (byte * 8);
    }
    words[w] = word;
  }
}

std::size_t pick(const float* scores, const std::uint64_t* words, std::size_t num_words,
                 float* out) {
  float* const begin = out;
  for (std::size_t w = 0; w < num_words; ++w) {
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      *out++ = scores[w * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))];
    }
  }
  return static_cast<std::size_t>(out - begin);
}

#include "base/simd/kernels_body.h"

}  // namespace

const Kernels kPortableKernels = TAMIS_KERNELS;

}  // namespace tamis::detail
