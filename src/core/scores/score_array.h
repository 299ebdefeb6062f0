// One float per sample, NaN until the sample is first observed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tamis/array.h"
#include "tamis/scorer.h"

namespace tamis::detail {

// A view of an array for saving and loading.
template <typename T>
ScorerArray saved_array(std::string_view name, std::string_view dtype, Array<T>& values) {
  return {name, dtype, std::as_writable_bytes(std::span<T>(values.data(), values.size()))};
}

// Replaces values[i] by update(values[i], k) for i = observation.indices[k]. Unless the indices are
// distinct, all old values are read before the first new one is written, so that an index that
// stands twice is applied once. `scratch` saves the allocation.
template <typename T, typename Update>
void apply_once(const Observation& observation, Array<T>& values, std::vector<T>& scratch,
                Update update) {
  const std::span<const std::uint32_t> indices = observation.indices;
  const std::size_t n = indices.size();
  T* const all = values.data();
  if (observation.distinct) {
    // Eight reads before eight writes: a write that waits for its cache line would hold up the
    // reads behind it. The values of the block after the next are asked for meanwhile.
    constexpr std::size_t kBlock = 8;
    const auto update_block = [&](std::size_t k) {
      const std::uint32_t* const block = indices.data() + k;
      std::array<T, kBlock> fresh;
      for (std::size_t j = 0; j < kBlock; ++j) fresh[j] = update(all[block[j]], k + j);
      for (std::size_t j = 0; j < kBlock; ++j) all[block[j]] = fresh[j];
    };
    std::size_t k = 0;
    for (; k + 3 * kBlock <= n; k += kBlock) {
      const std::uint32_t* const later = indices.data() + k + 2 * kBlock;
      for (std::size_t j = 0; j < kBlock; ++j) __builtin_prefetch(all + later[j], 1);
      update_block(k);
    }
    for (; k + kBlock <= n; k += kBlock) update_block(k);
    for (; k < n; ++k) all[indices[k]] = update(all[indices[k]], k);
    return;
  }
  if (scratch.size() < n) scratch.resize(n);
  T* const fresh = scratch.data();
  for (std::size_t k = 0; k < n; ++k) fresh[k] = update(all[indices[k]], k);
  for (std::size_t k = 0; k < n; ++k) all[indices[k]] = fresh[k];
}

}  // namespace tamis::detail
