// One version of the kernels for x86-64, with AVX2 or more. Defined by who includes it:
//   TAMIS_TARGET        the instructions to use
//   TAMIS_TABLE         the name of its table
//   TAMIS_RANDOM_BYTES  the width of its registers
#include "base/simd/versions.h"

#ifdef TAMIS_X86_KERNELS

#include <immintrin.h>

#include "base/byte_positions.h"

// Not a flag of the compiler, which would hold for the headers above as well.
#define TAMIS_PRAGMA_OF(text) _Pragma(#text)
#define TAMIS_PRAGMA(text) TAMIS_PRAGMA_OF(text)
#ifdef __clang__
TAMIS_PRAGMA(clang attribute push(__attribute__((target(TAMIS_TARGET))), apply_to = function))
#else
TAMIS_PRAGMA(GCC target(TAMIS_TARGET))
#endif

namespace tamis::detail {

namespace {

constexpr std::size_t kRandomBytes = TAMIS_RANDOM_BYTES;

using FourFloats = float __attribute__((vector_size(16)));
using FourDoubles = double __attribute__((vector_size(32)));
// g++ 12 needs four instructions for __builtin_convertvector.
inline void add_four(FourDoubles& sum, const FourFloats& floats) {
  sum += (FourDoubles)_mm256_cvtps_pd((__m128)floats);
}

inline std::size_t ones(std::uint64_t word) {
  return static_cast<std::size_t>(__builtin_popcountll(word));
}

inline std::size_t ones_of_byte(std::uint64_t byte) { return ones(byte); }

bool make_offsets(const std::uint64_t* random, std::uint32_t bound, std::uint32_t* offsets) {
  const __m256i four = _mm256_set1_epi64x(4);
  __m256i low_range = _mm256_sub_epi64(_mm256_set1_epi64x(bound), _mm256_set_epi64x(3, 2, 1, 0));
  __m256i high_range = _mm256_sub_epi64(low_range, _mm256_set1_epi64x(256));
  // The least low half of the products; their high halves are of no interest.
  __m256i least = _mm256_set1_epi32(-1);
  for (std::size_t k = 0; k < 256; k += 4) {
    const __m256i numbers = _mm256_load_si256(reinterpret_cast<const __m256i*>(random + k));
    const __m256i low = _mm256_mul_epu32(numbers, low_range);
    const __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(numbers, 32), high_range);
    constexpr int kOdd = 0b10101010;
    _mm256_store_si256(reinterpret_cast<__m256i*>(offsets + 2 * k),
                       _mm256_blend_epi32(_mm256_srli_epi64(low, 32), high, kOdd));
    least = _mm256_min_epu32(least, _mm256_min_epu32(low, high));
    low_range = _mm256_sub_epi64(low_range, four);
    high_range = _mm256_sub_epi64(high_range, four);
  }
  least = _mm256_and_si256(least, _mm256_set1_epi64x(0xffffffff));
  const __m256i enough = _mm256_cmpgt_epi64(least, _mm256_set1_epi64x(bound));
  return _mm256_movemask_epi8(enough) != -1;
}

void compare(const float* scores, std::size_t num_words, float low, float high,
             std::uint64_t* words) {
  const __m256 lows = _mm256_set1_ps(low);
  const __m256 highs = _mm256_set1_ps(high);
  // In the order in which the packing below takes them: it works on each half by itself.
  const __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
  const auto eight = [&](const float* at) {
    const __m256 score = _mm256_loadu_ps(at);
    return _mm256_castps_si256(_mm256_and_ps(_mm256_cmp_ps(score, lows, _CMP_GE_OQ),
                                             _mm256_cmp_ps(score, highs, _CMP_LE_OQ)));
  };
  const auto thirty_two = [&](const float* at) {
    const __m256i first = _mm256_packs_epi32(eight(at), eight(at + 8));
    const __m256i second = _mm256_packs_epi32(eight(at + 16), eight(at + 24));
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, second), order);
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes)));
  };
  for (std::size_t w = 0; w < num_words; ++w) {
    const float* at = scores + w * 64;
    words[w] = thirty_two(at) | (thirty_two(at + 32) << 32U);
  }
}

std::size_t pick(const float* scores, const std::uint64_t* words, std::size_t num_words,
                 float* out) {
  float* const begin = out;
  for (std::size_t w = 0; w < num_words; ++w) {
    std::uint64_t bits = words[w];
    for (const float *at = scores + w * 64, *const end = at + 64; at < end; at += 8, bits >>= 8U) {
      const auto* positions = reinterpret_cast<const __m256i*>(kBytePositions.table[bits & 255U]);
      _mm256_storeu_ps(out,
                       _mm256_permutevar8x32_ps(_mm256_loadu_ps(at), _mm256_load_si256(positions)));
      out += ones_of_byte(bits & 255U);
    }
  }
  return static_cast<std::size_t>(out - begin);
}

#include "base/simd/kernels_body.h"

}  // namespace

const Kernels TAMIS_TABLE = TAMIS_KERNELS;

}  // namespace tamis::detail

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
