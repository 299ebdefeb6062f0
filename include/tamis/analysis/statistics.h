// Means with honest error bars, for results repeated over a few seeds.
#pragma once

#include <cstddef>
#include <span>

namespace tamis::analysis {

// NaN for no values.
double mean(std::span<const double> values);

// Sample standard deviation, about the mean, divided by n - 1. NaN for fewer than 2 values.
double standard_deviation(std::span<const double> values);

// The t below which Student's distribution has probability `probability`: the number in the last
// column of a t table is student_t_quantile(0.975, n - 1). Throws std::invalid_argument unless
// probability is in (0, 1) and degrees_of_freedom positive and finite. Relative error below 1e-10
// up to 1,000 degrees of freedom.
double student_t_quantile(double probability, double degrees_of_freedom);

struct Interval {
  double mean = 0.0;
  double low = 0.0;
  double high = 0.0;
};

// Two-sided confidence interval of the mean of normally distributed values: mean plus and minus
// t * s / sqrt(n). From minus to plus infinity for a single value. Throws std::invalid_argument if
// there are no values, if one is not finite, or unless confidence is in (0, 1). `least_deviation`
// is taken for s where s is smaller: few values may agree by chance.
Interval confidence_interval(std::span<const double> values, double confidence = 0.95,
                             double least_deviation = 0.0);

// What repeated runs say about a difference.
struct Verdict {
  std::size_t num_pairs = 0;
  double mean = 0.0;
  double low = 0.0;
  double high = 0.0;
  // True if the interval excludes 0. False is not evidence that there is no difference.
  bool is_supported = false;
};

// Verdict on differences measured pair by pair, run i of both made with the same seed: that removes
// what the seed does to both. Throws as confidence_interval() does.
Verdict judge_differences(std::span<const double> differences, double confidence = 0.95,
                          double least_deviation = 0.0);

}  // namespace tamis::analysis
