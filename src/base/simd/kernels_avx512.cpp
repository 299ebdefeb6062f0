#include "base/simd/versions.h"

#ifdef TAMIS_X86_KERNELS

#include <immintrin.h>

#include "base/byte_positions.h"

#ifdef __clang__
#pragma clang attribute push(                                                           \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt"))), \
    apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt")
#endif

namespace tamis::detail {

namespace {

constexpr std::size_t kRandomBytes = 64;

#include "base/simd/kernels_x86_body.h"
// Uses what stands in the one above.
#include "base/simd/kernels_body.h"

}  // namespace

const Kernels kAvx512Kernels = TAMIS_KERNELS;

}  // namespace tamis::detail

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
