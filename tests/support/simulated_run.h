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

// One step of this rank at position(): one loss per sample with one process or if the score needs
// that, otherwise the mean loss of the batch, with the losses as norms if the score needs those.
// The loss (or a norm) of every 13th step is not a number.
inline void simulate_step(Pruner& pruner, std::size_t batch_size) {
  const EpochPlan& plan = *pruner.plan();
  const std::size_t begin = pruner.position();
  const std::size_t count = std::min(batch_size, plan.size() - begin);
  std::vector<float> losses;
  double sum = 0.0;
  for (std::size_t j = begin; j < begin + count; ++j) {
    losses.push_back(simulated_loss(static_cast<std::uint32_t>(plan.sample(j)), plan.epoch()));
    sum += static_cast<double>(losses.back());
  }
  const bool is_bad = (begin / batch_size) % 13 == 12;
  if (pruner.scorer().needs() == LossKind::output_gradients) {
    if (is_bad) losses[0] = std::numeric_limits<float>::quiet_NaN();
    pruner.observe(begin, sum / static_cast<double>(count), losses);
  } else if (pruner.communicator() == nullptr ||
             pruner.scorer().needs() == LossKind::sample_losses) {
    if (is_bad) losses[0] = std::numeric_limits<float>::quiet_NaN();
    pruner.observe(begin, losses);
  } else {
    pruner.observe(
        begin, count,
        is_bad ? std::numeric_limits<double>::infinity() : sum / static_cast<double>(count));
  }
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

// Epochs [0, num_epochs) of a training loop that has the loss of every sample. Every 13th step has
// one that is not a number. Watched: with norms that are the square roots of the losses.
inline void simulate_with_losses(Pruner& pruner, std::uint64_t num_epochs, std::size_t batch_size,
                                 bool is_watched = false) {
  for (std::uint64_t epoch = 0; epoch < num_epochs; ++epoch) {
    const EpochPlan& plan = pruner.start_epoch(epoch);
    for (std::size_t begin = 0; begin < plan.size(); begin += batch_size) {
      std::vector<float> losses;
      for (std::size_t j = begin; j < std::min(begin + batch_size, plan.size()); ++j) {
        losses.push_back(simulated_loss(static_cast<std::uint32_t>(plan.sample(j)), epoch));
      }
      std::vector<float> norms;
      for (const float loss : losses) norms.push_back(std::sqrt(loss));
      if (begin / batch_size % 13 == 12) losses[0] = std::numeric_limits<float>::quiet_NaN();
      if (is_watched) {
        pruner.observe(begin, losses, norms);
      } else {
        pruner.observe(begin, losses);
      }
    }
    pruner.set_position(plan.size());
  }
}

// All samples of this rank's plan, without those that fill it up.
inline std::vector<SampleIndex> own_samples(const EpochPlan& plan) {
  std::vector<SampleIndex> samples;
  for (std::size_t j = 0; j < plan.size(); ++j) {
    if (!plan.is_padding(j)) samples.push_back(plan.sample(j));
  }
  return samples;
}

}  // namespace tamis::test
