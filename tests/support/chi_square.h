// Chi-square tests with a stated false-alarm rate.
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace tamis::test {

// The statistic for counts that should all be equal.
inline double chi_square_uniform(const std::vector<std::size_t>& counts) {
  const double expected =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::size_t{0})) /
      static_cast<double>(counts.size());
  double statistic = 0.0;
  for (const std::size_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    statistic += difference * difference / expected;
  }
  return statistic;
}

// The value that a chi-square variable exceeds with probability 1e-6 (Wilson and Hilferty's
// approximation; 4.7534 is the normal quantile). Seeds are fixed, so a test passes always or never:
// the rate says how likely a correct program is to be stuck with an unlucky seed.
inline double chi_square_limit(std::size_t degrees_of_freedom) {
  const double df = static_cast<double>(degrees_of_freedom);
  const double spread = 2.0 / (9.0 * df);
  return df * std::pow(1.0 - spread + 4.7534 * std::sqrt(spread), 3.0);
}

}  // namespace tamis::test
