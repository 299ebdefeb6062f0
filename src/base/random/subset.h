// Uniformly random subsets of an exact size.
#pragma once

#include <cstddef>

#include "base/random/random.h"
#include "tamis/bitmap.h"

namespace tamis::detail {

// Exactly `count` of the set bits of `candidates`, every such subset equally likely.
// Requires: num_candidates == candidates.count() and count <= num_candidates.
Bitmap choose(const Bitmap& candidates, std::size_t num_candidates, std::size_t count,
              RandomStream& random);

// Exactly `count` of `size` bits.
Bitmap choose(std::size_t size, std::size_t count, RandomStream& random);

}  // namespace tamis::detail
