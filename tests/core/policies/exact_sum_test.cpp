#include "core/policies/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tamis::detail {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

double mean_of(const std::vector<float>& scores) {
  ExactSum sum;
  sum.add(scores);
  return sum.divided_by(scores.size());
}

TEST(ExactSum, OfEqualScoresHasTheirMean) {
  for (const float score : {0.1F, -0.1F, kLargest, -kLargest, kSmallest, 1.0F / 3.0F, 0.0F}) {
    EXPECT_EQ(mean_of(std::vector<float>(100'003, score)), static_cast<double>(score));
  }
}

TEST(ExactSum, LosesNothingToLargerScores) {
  EXPECT_EQ(mean_of({kLargest, kSmallest, -kLargest, 0.0F}), static_cast<double>(kSmallest) / 4.0);
  EXPECT_EQ(mean_of({1e30F, -1.0F, -1e30F}), -1.0 / 3.0);
}

TEST(ExactSum, RoundsTheMeanOnce) {
  std::mt19937 random(1);
  for (int k = 0; k < 200; ++k) {
    // Multiples of 2^-30 below 2^3: the sum is exact in a 64-bit mantissa.
    std::vector<float> scores(1 + random() % 1000);
    long double sum = 0.0L;
    for (float& score : scores) {
      score = std::ldexp(static_cast<float>(random() >> 8U), -30) - 0.004F;
      sum += static_cast<long double>(score);
    }
    const auto expected = static_cast<double>(sum / static_cast<long double>(scores.size()));
    // The quotient itself is rounded to 64 bits before, which matters once in 2000 times.
    EXPECT_NEAR(mean_of(scores), expected, std::fabs(expected) * 0x1p-53);
  }
}

TEST(ExactSum, SkipsUnscoredSamples) {
  ExactSum sum;
  sum.add(std::vector<float>{1.0F, std::numeric_limits<float>::quiet_NaN(), 2.0F});
  EXPECT_EQ(sum.divided_by(2), 1.5);
}

TEST(ExactSum, DoesNotDependOnHowScoresAreCutIntoParts) {
  std::mt19937 random(2);
  std::vector<float> scores(10'000);
  for (float& score : scores) {
    score = std::ldexp(static_cast<float>(random()) - 2e9F, static_cast<int>(random() % 200) - 130);
  }
  const double whole = mean_of(scores);
  for (const std::size_t num_parts : {2U, 3U, 7U, 100U}) {
    ExactSum total;
    for (std::size_t p = 0; p < num_parts; ++p) {
      ExactSum part;
      const std::size_t begin = p * scores.size() / num_parts;
      const std::size_t end = (p + 1) * scores.size() / num_parts;
      part.add(std::span(scores).subspan(begin, end - begin));
      for (std::size_t d = 0; d < ExactSum::kDigits; ++d) total.digits()[d] += part.digits()[d];
    }
    total.carry();
    EXPECT_EQ(total.divided_by(scores.size()), whole);
  }
}

}  // namespace
}  // namespace tamis::detail
