// Number and mean of the scores of all ranks.
#pragma once

#include <cstdint>

#include "tamis/policy.h"

namespace tamis::detail {

struct PartStatistics {
  std::uint64_t num_scored = 0;  // of all ranks
  double mean = 0.0;             // of these, rounded once: the same for any number of ranks
};

// Sends 88 bytes.
PartStatistics part_statistics(const PartInput& input);

}  // namespace tamis::detail
