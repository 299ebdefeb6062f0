// UCB: the highest scored samples. Its own score, loss-ucb, is an upper confidence bound of the
// loss.
#pragma once

#include <memory>

#include "tamis/policy.h"

namespace tamis {

struct UcbOptions {
  // Fraction removed, in [0, 1).
  double prune_ratio = 0.3;
};

// The floor((1 - prune_ratio) N) highest scored samples. Unscored samples come before all others.
std::unique_ptr<Policy> make_ucb(const UcbOptions& options = {});

}  // namespace tamis
