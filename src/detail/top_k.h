// The highest scores, without sorting.
#pragma once

#include <cstddef>
#include <span>

#include "detail/random.h"
#include "winnow/bitmap.h"

namespace winnow::detail {

// The `count` highest scores among those that are numbers; equal scores at the border are chosen
// uniformly. Requires: count is at most the number of scored samples.
Bitmap highest(std::span<const float> scores, std::size_t count, RandomStream& random);

// `count` samples: first those that have no score (a random part of them if they are more than
// `count`), then the highest scored. Requires: count <= scores.size().
Bitmap unscored_then_highest(std::span<const float> scores, std::size_t count,
                             RandomStream& random);

}  // namespace winnow::detail
