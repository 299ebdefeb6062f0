// Training without a model: the loss of a sample is a fixed function of its index and the epoch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tamis/pruner.h"

namespace tamis::test {

// In (0, 2.1), falling with the epoch, different for every sample.
inline float simulated_loss(std::uint32_t index, std::uint64_t epoch) {
  const auto unit = [](std::uint64_t key) {
    key = (key ^ (key >> 31U)) * 0x9E3779B97F4A7C15U;
    key = (key ^ (key >> 29U)) * 0xBF58476D1CE4E5B9U;
    return static_cast<double>(key >> 40U) / static_cast<double>(1U << 24U);
  };
  const double own = 2.0 * unit(index + 1U) * std::exp(-static_cast<double>(epoch) / 20.0);
  return static_cast<float>(0.01 + own + 0.05 * unit((epoch << 32U) + index));
}

// One step of the running epoch at position(). The loss of every 13th batch is not a number.
inline void simulate_step(Pruner& pruner, std::size_t batch_size) {
  const EpochPlan& plan = *pruner.plan();
  const std::size_t begin = pruner.position();
  const std::size_t count = std::min(batch_size, plan.size() - begin);
  const std::span<const std::uint32_t> batch = plan.order().subspan(begin, count);
  std::vector<float> losses;
  for (const std::uint32_t index : batch) losses.push_back(simulated_loss(index, plan.epoch()));
  if ((begin / batch_size) % 13 == 12) losses[0] = std::numeric_limits<float>::quiet_NaN();
  pruner.observe(batch, losses);
  pruner.set_position(begin + count);
}

// The rest of the running epoch.
inline void simulate_epoch(Pruner& pruner, std::size_t batch_size) {
  while (pruner.position() < pruner.plan()->size()) simulate_step(pruner, batch_size);
}

// Epochs [begin, end), from their start.
inline void simulate_epochs(Pruner& pruner, std::uint64_t begin, std::uint64_t end,
                            std::size_t batch_size) {
  for (std::uint64_t epoch = begin; epoch < end; ++epoch) {
    pruner.start_epoch(epoch);
    simulate_epoch(pruner, batch_size);
  }
}

}  // namespace tamis::test
