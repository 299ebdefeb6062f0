// What a run on several ranks costs, without running it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tamis/scorer.h"

namespace tamis {

struct RankCost {
  std::uint64_t bytes_sent = 0;      // by one rank, for one epoch
  std::uint64_t bytes_received = 0;  // the same
  std::uint64_t memory = 0;          // bytes of scores and plan on one rank
};

struct EpochShape {
  std::uint64_t num_samples = 0;
  std::uint64_t num_selected = 0;
  std::uint64_t num_ranks = 1;
  std::uint64_t batch_size = 1;             // of one rank
  std::uint64_t bytes_per_score = 4;        // that the scorer keeps per sample
  LossKind observed = LossKind::mean_loss;  // of every batch
};

// Replicated: the losses of an epoch and the comparison of the next plans; exact for the rank's
// traffic if all ranks train on their whole plans.
RankCost predict_replicated(const EpochShape& shape, std::uint64_t epoch);

// Sharded: what is sent depends on the scores and hardly on their number.
std::uint64_t sharded_memory(const EpochShape& shape);
// How much more a rank sends, and receives, than with fewer samples: a random subset's border is
// sought among keys whose number grows with the square root of the samples.
std::uint64_t sharded_growth(std::uint64_t num_samples, std::uint64_t num_fewer);

}  // namespace tamis
