// The highest scores, without sorting.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace tamis::detail {

// Where the highest scores begin.
struct ScoreBorder {
  float value = 0.0F;            // the count-th highest score
  std::uint64_t num_wanted = 0;  // how many of the scores equal to it belong to the highest
};

// The border of the `count` highest scores, of those that are numbers. `add_up` adds the histograms
// of other parts of the data to ours, which then is that of all of it. Requires: count is at least
// 1 and at most the number of scored samples.
ScoreBorder find_border(std::span<const float> scores, std::uint64_t count,
                        const std::function<void(std::span<std::int64_t>)>& add_up);

}  // namespace tamis::detail
