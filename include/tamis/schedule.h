// Schedule: in which epochs pruning is on.
#pragma once

#include <cstdint>

namespace tamis {

// Epoch e is pruned when e + 1 <= delta * num_epochs; the epochs after that anneal on full data.
struct Schedule {
  std::uint64_t num_epochs = 1;  // in [1, 2^32 - 1]
  double delta = 1.0;            // in [0, 1]; 0 never prunes, 1 never anneals

  std::uint64_t num_pruned_epochs() const;
  bool is_pruned(std::uint64_t epoch) const { return epoch < num_pruned_epochs(); }
};

// Throws std::invalid_argument if a field is out of range.
void validate(const Schedule& schedule);

}  // namespace tamis
