// tamis simulate --ranks: what a run on several processes exchanges and keeps.
#pragma once

#include <cstdint>

#include "tamis/pruner.h"

namespace tamis::program {

inline constexpr std::uint64_t kMaxSamplesOfRanks = 10'000'000'000;
inline constexpr std::uint64_t kMaxSimulatedRanks = 256;

struct RankSimulation {
  PrunerOptions options;  // num_samples: of the whole data set
  Layout layout = Layout::automatic;
  std::uint64_t num_ranks = 1;
  std::uint64_t batch_size = 1;  // of one rank
  bool json = false;
};

// Runs the ranks as threads, on a data set of at most 2^18 samples, and prints what each epoch
// would exchange and keep with all samples. Throws UsageError if a rank's part is too large.
void simulate_ranks(const RankSimulation& simulation);

}  // namespace tamis::program
