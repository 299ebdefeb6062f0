// How well one number per sample agrees with another: the fidelity of a score.
#pragma once

#include <span>

namespace tamis::analysis {

// All functions here look at the pairs (x[i], y[i]) in which neither is NaN, so an unscored sample
// does not count. They throw std::invalid_argument if x and y differ in length, and return NaN
// where the result is undefined: fewer than 2 pairs or, for the correlations, a constant x or y.
// Sums are made in double. O(n log n) at most.

// Pearson's correlation, in [-1, 1]: 1 on a rising straight line. NaN if a value is infinite.
double pearson(std::span<const float> x, std::span<const float> y);
double pearson(std::span<const double> x, std::span<const double> y);

// Spearman's rank correlation, in [-1, 1]: 1 if y rises whenever x does. Equal values share the
// mean of their ranks.
double spearman(std::span<const float> x, std::span<const float> y);
double spearman(std::span<const double> x, std::span<const double> y);

// Share of the k highest x that are also among the k highest y, in [0, 1]; k is `share` of the
// pairs, rounded to the nearest whole number, at least 1. Unrelated x and y give about `share`.
// Where values tie at the border of the top, the result is the mean over all ways to break the
// ties, for x and for y independently. Throws std::invalid_argument unless share is in (0, 1].
double top_overlap(std::span<const float> x, std::span<const float> y, double share = 0.3);
double top_overlap(std::span<const double> x, std::span<const double> y, double share = 0.3);

}  // namespace tamis::analysis
