// A pruner whose scores tell which batch a loss was observed for.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tamis/loss_book.h"

namespace tamis::test {

inline constexpr std::size_t kNumSamples = 40;
inline const std::vector<float> kNorms(8, 1.0F);  // of a batch

inline Pruner make_pruner(std::size_t num_samples = kNumSamples,
                          std::string score = "last-batch-loss") {
  return Pruner({.num_samples = num_samples,
                 .num_epochs = 4,
                 .policy = {.name = "none"},
                 .score = Spec{.name = std::move(score)}});
}

inline std::vector<SampleIndex> ids_of(const Pruner& pruner, const PlannedBatch& batch) {
  std::vector<SampleIndex> ids(batch.count);
  pruner.plan()->copy_to(batch.begin, ids);
  return ids;
}

// The loss that belongs to the batch that starts at this place of the plan.
inline double loss_at(std::size_t begin) { return 1.0 + static_cast<double>(begin); }

}  // namespace tamis::test
