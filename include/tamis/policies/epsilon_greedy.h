// Epsilon-greedy: mostly the highest scored samples, and some at random.
#pragma once

#include <memory>

#include "tamis/policy.h"

namespace tamis {

struct EpsilonGreedyOptions {
  // Fraction removed, in [0, 1).
  double prune_ratio = 0.3;
  // Share of the kept samples that is chosen at random, in [0, 1]. The value is ours.
  double epsilon = 0.1;
};

// k = floor((1 - prune_ratio) N) samples: the k - floor(epsilon k) highest scored and floor(epsilon
// k) chosen uniformly from the rest. Unscored samples come before all others.
std::unique_ptr<Policy> make_epsilon_greedy(const EpsilonGreedyOptions& options = {});

}  // namespace tamis
