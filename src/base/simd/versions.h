// The versions of the kernels that this build has.
#pragma once

#include "base/simd/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define TAMIS_X86_KERNELS
#endif

// What a version puts into its table, once all its functions are there.
#define TAMIS_KERNELS                                                                           \
  {                                                                                             \
    .make_random = make_random, .make_offsets = make_offsets, .list_positions = list_positions, \
    .count_ones = count_ones, .compare = compare, .add_scores = add_scores,                     \
    .add_squares = add_squares, .add_magnitudes = add_magnitudes, .scale = scale, .pick = pick, \
    .find_cells = find_cells, .find_sections = find_sections                                    \
  }

namespace tamis::detail {

extern const Kernels kPortableKernels;
#ifdef TAMIS_X86_KERNELS
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace tamis::detail
