// One float per sample, NaN until the sample is first observed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "winnow/array.h"
#include "winnow/scorer.h"

namespace winnow::detail {

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
  if (observation.distinct) {
    T* const all = values.data();
    for (std::size_t k = 0; k < n; ++k) all[indices[k]] = update(all[indices[k]], k);
    return;
  }
  if (scratch.size() < n) scratch.resize(n);
  T* const fresh = scratch.data();
  T* const all = values.data();
  for (std::size_t k = 0; k < n; ++k) fresh[k] = update(all[indices[k]], k);
  for (std::size_t k = 0; k < n; ++k) all[indices[k]] = fresh[k];
}

}  // namespace winnow::detail
