// Histogram of scores, as numbers and as bars in the terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tamis::program {

// Scores in [low, high); the last bin holds its upper bound too.
struct HistogramBin {
  double low = 0.0;
  double high = 0.0;
  std::size_t count = 0;
};

// At most `num_bins` bins of equal width over the finite scores; one if all are equal, none if
// there are none. Where a few outliers would leave most bins empty, the first and the last bin are
// wider and reach out to them.
std::vector<HistogramBin> histogram(std::span<const float> scores, std::size_t num_bins);

// One line per bin: range, count, bar. Fits `width` columns; block characters if `utf8`.
std::string format_histogram(std::span<const HistogramBin> bins, std::size_t width, bool utf8);

}  // namespace tamis::program
