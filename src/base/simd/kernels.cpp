#include "base/simd/kernels.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "base/simd/versions.h"

namespace tamis::detail {

namespace {

std::atomic<const Kernels*> chosen = nullptr;

const Kernels& kernels_of(InstructionSet set) {
#ifdef TAMIS_X86_KERNELS
  if (set == InstructionSet::avx512) return kAvx512Kernels;
  if (set == InstructionSet::avx2) return kAvx2Kernels;
#endif
  (void)set;
  return kPortableKernels;
}

const Kernels& choose_kernels() {
  const std::vector<InstructionSet> sets = available_sets();
  const char* const wanted = std::getenv("TAMIS_INSTRUCTION_SET");
  if (wanted == nullptr || *wanted == '\0') return kernels_of(sets.back());
  std::string names;
  for (const InstructionSet set : sets) {
    if (name_of(set) == wanted) return kernels_of(set);
    names.append(names.empty() ? "" : ", ").append(name_of(set));
  }
  throw std::invalid_argument("TAMIS_INSTRUCTION_SET must be one that this processor has (" +
                              names + "), got " + wanted);
}

}  // namespace

const Kernels& kernels() {
  const Kernels* found = chosen.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = &choose_kernels();
    chosen.store(found, std::memory_order_relaxed);
  }
  return *found;
}

std::string_view name_of(InstructionSet set) {
  constexpr std::array<std::string_view, 3> kNames = {"portable", "avx2", "avx512"};
  return kNames[static_cast<std::size_t>(set)];
}

std::vector<InstructionSet> available_sets() {
  std::vector<InstructionSet> sets{InstructionSet::portable};
#ifdef TAMIS_X86_KERNELS
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                        __builtin_cpu_supports("bmi2") != 0 &&
                        __builtin_cpu_supports("popcnt") != 0;
  if (has_avx2) sets.push_back(InstructionSet::avx2);
  if (has_avx2 && __builtin_cpu_supports("avx512f") != 0 &&
      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0) {
    sets.push_back(InstructionSet::avx512);
  }
#endif
  return sets;
}

UseInstructionSet::UseInstructionSet(InstructionSet set) : previous_(&kernels()) {
  chosen.store(&kernels_of(set), std::memory_order_relaxed);
}

UseInstructionSet::~UseInstructionSet() { chosen.store(previous_, std::memory_order_relaxed); }

}  // namespace tamis::detail
