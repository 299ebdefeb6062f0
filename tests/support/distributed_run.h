// Runs of a DistributedPruner without a model: losses are simulated_loss().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "support/simulated_run.h"
#include "tamis/distributed_pruner.h"

namespace tamis::test {

// One step of this rank at position(): the mean loss of its batch, or one loss per sample if the
// score needs that. The loss of every 13th step is not a number.
inline void simulate_step(DistributedPruner& pruner, std::size_t batch_size) {
  const RankPlan& plan = *pruner.plan();
  const std::size_t begin = pruner.position();
  const std::size_t count = std::min(batch_size, plan.size() - begin);
  std::vector<float> losses;
  double sum = 0.0;
  for (std::size_t j = begin; j < begin + count; ++j) {
    losses.push_back(simulated_loss(static_cast<std::uint32_t>(plan.sample(j)), plan.epoch()));
    sum += static_cast<double>(losses.back());
  }
  const bool is_bad = (begin / batch_size) % 13 == 12;
  if (pruner.scorer().needs() == LossKind::sample_losses) {
    if (is_bad) losses[0] = std::numeric_limits<float>::quiet_NaN();
    pruner.observe(begin, losses);
  } else {
    pruner.observe(
        begin, count,
        is_bad ? std::numeric_limits<double>::infinity() : sum / static_cast<double>(count));
  }
  pruner.set_position(begin + count);
}

inline void simulate_epoch(DistributedPruner& pruner, std::size_t batch_size) {
  while (pruner.position() < pruner.plan()->size()) simulate_step(pruner, batch_size);
}

inline void simulate_epochs(DistributedPruner& pruner, std::uint64_t begin, std::uint64_t end,
                            std::size_t batch_size) {
  for (std::uint64_t epoch = begin; epoch < end; ++epoch) {
    pruner.start_epoch(epoch);
    simulate_epoch(pruner, batch_size);
  }
}

// All samples of this rank's plan, without those that fill it up.
inline std::vector<SampleIndex> own_samples(const RankPlan& plan) {
  std::vector<SampleIndex> samples;
  for (std::size_t j = 0; j < plan.size(); ++j) {
    if (!plan.is_padding(j)) samples.push_back(plan.sample(j));
  }
  return samples;
}

}  // namespace tamis::test
