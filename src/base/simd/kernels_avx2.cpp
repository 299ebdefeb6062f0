#define TAMIS_TARGET "avx2,bmi,bmi2,popcnt"
#define TAMIS_TABLE kAvx2Kernels
#define TAMIS_RANDOM_BYTES 32
#include "base/simd/kernels_x86.h"
