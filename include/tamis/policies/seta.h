// SeTa: a window of difficulty that slides from easy to hard over a random subset.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/policy.h"

namespace tamis {

struct SetaOptions {
  // Fraction removed at random before the groups are formed, in [0, 1).
  double prune_ratio = 0.1;
  // Number of difficulty groups, at least 1.
  std::size_t groups = 5;
  // Size of the window as a share of the groups, in (0, 1]; groups * window_scale is rounded half
  // to even and must give at least 1.
  double window_scale = 0.9;
};

// Keeps floor((1 - prune_ratio) N) samples at random, clusters their scores into groups and uses
// the groups of the window; the window moves by one group per epoch and starts over at the end.
// Epoch 0 uses all groups. Weights stay 1; annealing epochs use the random subset.
std::unique_ptr<Policy> make_seta(const SetaOptions& options = {});

}  // namespace tamis
