// Bitmaps from comparisons of scores. NaN (unscored) compares false.
#pragma once

#include <span>

#include "tamis/bitmap.h"

namespace tamis::detail {

// Bit i: low <= scores[i] && scores[i] <= high.
Bitmap within(std::span<const float> scores, float low, float high);

// Bit i: scores[i] < threshold, exactly, although threshold is a double.
Bitmap below(std::span<const float> scores, double threshold);

// Bit i: scores[i] is a number.
Bitmap scored(std::span<const float> scores);

}  // namespace tamis::detail
