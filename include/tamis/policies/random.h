// Random pruning: what every score has to beat.
#pragma once

#include <memory>

#include "tamis/policy.h"

namespace tamis {

struct RandomOptions {
  // Fraction removed, in [0, 1).
  double prune_ratio = 0.3;
};

// One uniform subset of floor((1 - prune_ratio) N) samples for the whole run.
std::unique_ptr<Policy> make_random(const RandomOptions& options = {});

// A fresh subset in every epoch.
std::unique_ptr<Policy> make_random_dynamic(const RandomOptions& options = {});

}  // namespace tamis
