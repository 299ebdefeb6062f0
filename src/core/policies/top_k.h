// The highest scores, without sorting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/random/random.h"
#include "tamis/bitmap.h"

namespace tamis::detail {

// Where the highest scores begin.
struct ScoreBorder {
  float value = 0.0F;            // the count-th highest score
  std::uint64_t num_wanted = 0;  // how many of the scores equal to it belong to the highest
};

// The border of the `count` highest scores. `add_up` adds the histograms of other parts of the data
// to ours, which then is that of all of it.
ScoreBorder find_border(std::span<const float> scores, std::uint64_t count,
                        const std::function<void(std::span<std::int64_t>)>& add_up = {});

// The `count` highest scores among those that are numbers; equal scores at the border are chosen
// uniformly. Requires: count is at most the number of scored samples.
Bitmap highest(std::span<const float> scores, std::size_t count, RandomStream& random);

// `count` samples: first those that have no score (a random part of them if they are more than
// `count`), then the highest scored. Requires: count <= scores.size().
Bitmap unscored_then_highest(std::span<const float> scores, std::size_t count,
                             RandomStream& random);

}  // namespace tamis::detail
