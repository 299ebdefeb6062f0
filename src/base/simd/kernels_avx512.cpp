#define TAMIS_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt"
#define TAMIS_TABLE kAvx512Kernels
#define TAMIS_RANDOM_BYTES 64
#include "base/simd/kernels_x86.h"
