#include "tamis/analysis/correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace tamis::analysis {
namespace {

// The pairs without a NaN.
struct Pairs {
  std::vector<double> x;
  std::vector<double> y;
};

template <typename T>
Pairs complete_pairs(const char* who, std::span<const T> x, std::span<const T> y) {
  if (x.size() != y.size()) {
    throw std::invalid_argument(detail::concat(who, ": x and y must have the same length, got ",
                                               x.size(), " and ", y.size()));
  }
  Pairs pairs;
  pairs.x.reserve(x.size());
  pairs.y.reserve(y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) || std::isnan(y[i])) continue;
    pairs.x.push_back(static_cast<double>(x[i]));
    pairs.y.push_back(static_cast<double>(y[i]));
  }
  return pairs;
}

// Replaces the values by their deviations from the mean, scaled to at most 1 so that squares
// neither overflow nor vanish. False if the values are constant or not all finite. Tested on the
// values: the rounded mean of equal numbers may differ from them.
bool standardize(std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (*low == *high || !std::isfinite(*low) || !std::isfinite(*high)) return false;
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double largest = 0.0;
  for (double& value : values) {
    value -= mean;
    largest = std::max(largest, std::abs(value));
  }
  for (double& value : values) value /= largest;
  return true;
}

double correlate(Pairs pairs) {
  if (pairs.x.size() < 2 || !standardize(pairs.x) || !standardize(pairs.y)) return std::nan("");
  double xx = 0.0;
  double yy = 0.0;
  double xy = 0.0;
  for (std::size_t i = 0; i < pairs.x.size(); ++i) {
    xx += pairs.x[i] * pairs.x[i];
    yy += pairs.y[i] * pairs.y[i];
    xy += pairs.x[i] * pairs.y[i];
  }
  return std::clamp(xy / (std::sqrt(xx) * std::sqrt(yy)), -1.0, 1.0);
}

// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> average_ranks(const std::vector<double>& values) {
  // Values beside their positions: sorting positions alone misses the cache at every comparison.
  struct Entry {
    double value;
    std::size_t position;
  };
  std::vector<Entry> order(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) order[i] = {values[i], i};
  std::sort(order.begin(), order.end(),
            [](const Entry& a, const Entry& b) { return a.value < b.value; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && order[end].value == order[begin].value) ++end;
    const double rank = 0.5 * static_cast<double>(begin + 1 + end);
    for (std::size_t i = begin; i < end; ++i) ranks[order[i].position] = rank;
    begin = end;
  }
  return ranks;
}

// Probability of each value to be among the `count` highest if ties are broken at random.
std::vector<double> top_membership(const std::vector<double>& values, std::size_t count) {
  std::vector<double> sorted = values;
  const auto border = sorted.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(sorted.begin(), border, sorted.end(), std::greater<>());
  const double threshold = *border;
  std::size_t num_above = 0;
  std::size_t num_tied = 0;
  for (const double value : values) {
    if (value > threshold) ++num_above;
    if (value == threshold) ++num_tied;
  }
  const double tied_share = static_cast<double>(count - num_above) / static_cast<double>(num_tied);
  std::vector<double> membership(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    membership[i] = values[i] > threshold ? 1.0 : values[i] == threshold ? tied_share : 0.0;
  }
  return membership;
}

double rank_correlate(const Pairs& pairs) {
  return correlate({.x = average_ranks(pairs.x), .y = average_ranks(pairs.y)});
}

double overlap(const Pairs& pairs, double share) {
  detail::require(share > 0.0 && share <= 1.0, "top_overlap", "share", "in (0, 1]", share);
  if (pairs.x.size() < 2) return std::nan("");
  const double exact_count = share * static_cast<double>(pairs.x.size());
  const auto count = static_cast<std::size_t>(std::max(1.0, std::round(exact_count)));
  const std::vector<double> in_x = top_membership(pairs.x, count);
  const std::vector<double> in_y = top_membership(pairs.y, count);
  const double common = std::inner_product(in_x.begin(), in_x.end(), in_y.begin(), 0.0);
  return std::min(common / static_cast<double>(count), 1.0);
}

}  // namespace

double pearson(std::span<const float> x, std::span<const float> y) {
  return correlate(complete_pairs("pearson", x, y));
}
double pearson(std::span<const double> x, std::span<const double> y) {
  return correlate(complete_pairs("pearson", x, y));
}

double spearman(std::span<const float> x, std::span<const float> y) {
  return rank_correlate(complete_pairs("spearman", x, y));
}
double spearman(std::span<const double> x, std::span<const double> y) {
  return rank_correlate(complete_pairs("spearman", x, y));
}

double top_overlap(std::span<const float> x, std::span<const float> y, double share) {
  return overlap(complete_pairs("top_overlap", x, y), share);
}
double top_overlap(std::span<const double> x, std::span<const double> y, double share) {
  return overlap(complete_pairs("top_overlap", x, y), share);
}

}  // namespace tamis::analysis
