// Batches of the running plan by their position in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "tamis/pruner.h"

namespace tamis::python {

inline const EpochPlan& running_plan(const Pruner& pruner) {
  if (pruner.plan() == nullptr) {
    throw std::runtime_error("Pruner: no epoch is running; call start_epoch first");
  }
  return *pruner.plan();
}

// Samples [begin, begin + count) of the running plan, fewer at its end.
inline std::span<const std::uint32_t> planned_batch(const Pruner& pruner, std::size_t begin,
                                                    std::size_t count) {
  const std::span<const std::uint32_t> order = running_plan(pruner).order();
  if (begin > order.size()) {
    throw std::out_of_range("Pruner: begin must be in [0, " + std::to_string(order.size()) +
                            "], got " + std::to_string(begin));
  }
  return order.subspan(begin, std::min(count, order.size() - begin));
}

}  // namespace tamis::python
