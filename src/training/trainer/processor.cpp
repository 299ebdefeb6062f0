// What this processor and this build of torch are fast at.
#include <ATen/Context.h>

#include "training/trainer/run_config.h"

namespace tamis::training {

namespace {

// Without such instructions bfloat16 is emulated, and slower than float32.
bool multiplies_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace

void choose_for_processor(TrainingConfig& config) {
  const bool has_onednn = at::hasMKLDNN();
  config.precision = has_onednn && multiplies_bfloat16() ? Precision::bfloat16 : Precision::float32;
  config.channels_last = has_onednn;
}

}  // namespace tamis::training
