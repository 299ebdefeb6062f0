// Slow and simple: the least within-group sum of squares of scores in one dimension.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace tamis::test {

// O(G n^2) and no subtraction of large numbers: right for every mixture of scales. With the cuts:
// group j of the optimum is sorted[cuts[j]] to sorted[cuts[j + 1] - 1].
struct OptimalGrouping {
  double cost = 0.0;
  std::vector<std::size_t> cuts;
};
inline OptimalGrouping optimal_grouping(const std::vector<double>& sorted, std::size_t groups) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::size_t n = sorted.size();
  std::vector<std::vector<double>> best(groups + 1, std::vector<double>(n + 1, kInfinity));
  std::vector<std::vector<std::size_t>> from(groups + 1, std::vector<std::size_t>(n + 1, 0));
  best[0][0] = 0.0;
  for (std::size_t j = 1; j <= groups; ++j) best[j][0] = 0.0;
  for (std::size_t end = 1; end <= n; ++end) {
    double mean = 0.0;
    double squares = 0.0;
    double count = 0.0;
    for (std::size_t begin = end; begin-- > 0;) {
      // Welford's update for distances from the last score, down to the first.
      count += 1.0;
      const double distance = sorted[begin] - sorted[end - 1];
      const double delta = distance - mean;
      mean += delta / count;
      squares += delta * (distance - mean);
      for (std::size_t j = 1; j <= groups; ++j) {
        if (best[j - 1][begin] + squares < best[j][end]) {
          best[j][end] = best[j - 1][begin] + squares;
          from[j][end] = begin;
        }
      }
    }
  }
  OptimalGrouping result{.cost = best[groups][n], .cuts = {n}};
  for (std::size_t j = groups; j > 0; --j) result.cuts.push_back(from[j][result.cuts.back()]);
  std::reverse(result.cuts.begin(), result.cuts.end());
  return result;
}

// O(G n log n) by prefix sums of the distance to the mean, so for scores of one scale only.
class FastOptimum {
 public:
  explicit FastOptimum(std::vector<float> scores) {
    std::sort(scores.begin(), scores.end());
    long double mean = 0.0L;
    for (const float score : scores) mean += score;
    mean /= static_cast<long double>(scores.size());
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const long double distance = scores[i] - mean;
      if (i == 0 || scores[i] != scores[i - 1]) prefixes_.push_back(prefixes_.back());
      prefixes_.back().count += 1.0L;
      prefixes_.back().sum += distance;
      prefixes_.back().squares += distance * distance;
    }
  }

  double cost(std::size_t groups) {
    const std::size_t n = prefixes_.size() - 1;
    before_.resize(n + 1);
    for (std::size_t i = 0; i <= n; ++i) before_[i] = cost(0, i);
    for (std::size_t j = 1; j < groups; ++j) {
      after_.resize(n + 1);
      extend(0, n, 0, n);
      std::swap(before_, after_);
    }
    return static_cast<double>(before_[n]);
  }

 private:
  struct Prefix {
    long double count = 0.0L;
    long double sum = 0.0L;
    long double squares = 0.0L;
  };

  long double cost(std::size_t begin, std::size_t end) const {
    if (begin == end) return 0.0L;
    const Prefix& a = prefixes_[begin];
    const Prefix& b = prefixes_[end];
    const long double sum = b.sum - a.sum;
    return std::max(0.0L, b.squares - a.squares - sum * sum / (b.count - a.count));
  }

  // One group more for ends in [first, last], whose best begins are in [low, high].
  void extend(std::size_t first, std::size_t last, std::size_t low, std::size_t high) {
    const std::size_t middle = (first + last) / 2;
    std::size_t best = low;
    after_[middle] = std::numeric_limits<long double>::infinity();
    for (std::size_t begin = low; begin <= std::min(middle, high); ++begin) {
      const long double total = before_[begin] + cost(begin, middle);
      if (total < after_[middle]) {
        after_[middle] = total;
        best = begin;
      }
    }
    if (first < middle) extend(first, middle - 1, low, best);
    if (middle < last) extend(middle + 1, last, best, high);
  }

  std::vector<Prefix> prefixes_ = {Prefix{}};
  std::vector<long double> before_;
  std::vector<long double> after_;
};

}  // namespace tamis::test
