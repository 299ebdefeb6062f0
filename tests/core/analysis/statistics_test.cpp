#include "tamis/analysis/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>
#include <stdexcept>
#include <vector>

namespace tamis::analysis {
namespace {

TEST(Statistics, KnowMeanAndStandardDeviation) {
  const std::vector<double> values = {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0};
  EXPECT_DOUBLE_EQ(mean(values), 5.0);
  EXPECT_DOUBLE_EQ(standard_deviation(values), std::sqrt(32.0 / 7.0));
  EXPECT_TRUE(std::isnan(mean({})));
  EXPECT_TRUE(std::isnan(standard_deviation(std::vector<double>{1.0})));
}

struct TableEntry {
  double probability;
  double degrees_of_freedom;
  double t;
};

// Expected numbers: the inverse of mpmath's incomplete beta function at 40 digits. (scipy 1.10's
// t.ppf agrees to 1e-9 only.)
TEST(StudentT, HasTheQuantilesOfTheTable) {
  const std::vector<TableEntry> table = {
      {0.975, 1, 12.706204736174693},    {0.975, 2, 4.3026527297494618},
      {0.975, 4, 2.7764451051977935},    {0.975, 9, 2.262157162798205},
      {0.975, 29, 2.0452296421327039},   {0.95, 3, 2.3533634348018229},
      {0.995, 5, 4.0321429835552272},    {0.9, 7, 1.4149239276505086},
      {0.9995, 2, 31.599054576445363},   {0.6, 12, 0.259032745676887},
      {0.975, 1000, 1.9623390808264081}, {1e-10, 5, -156.82559270889432},
      {0.75, 0.5, 1.5537739740300373},   {0.999, 2.5, 13.82219311086596}};
  for (const auto& [probability, degrees_of_freedom, t] : table) {
    EXPECT_NEAR(student_t_quantile(probability, degrees_of_freedom), t, 1e-12 * std::abs(t))
        << probability << ", " << degrees_of_freedom;
  }
}

// With one degree of freedom the quantile is tan(pi (p - 1/2)), with two
// (2p - 1) sqrt(2 / (4 p (1 - p))).
TEST(StudentT, EqualsItsClosedFormsForOneAndTwoDegreesOfFreedom) {
  for (int i = 1; i < 200; ++i) {
    const double p = i / 200.0;
    const double one = std::tan(std::numbers::pi * (p - 0.5));
    const double two = (2.0 * p - 1.0) * std::sqrt(2.0 / (4.0 * p * (1.0 - p)));
    EXPECT_NEAR(student_t_quantile(p, 1.0), one, 1e-12 * (1.0 + std::abs(one)));
    EXPECT_NEAR(student_t_quantile(p, 2.0), two, 1e-12 * (1.0 + std::abs(two)));
  }
}

TEST(StudentT, IsSymmetricIncreasingAndApproachesTheNormalQuantile) {
  for (const double v : {0.7, 3.0, 30.0}) {
    double previous = student_t_quantile(0.01, v);
    for (int i = 2; i < 100; ++i) {
      const double p = i / 100.0;
      const double t = student_t_quantile(p, v);
      EXPECT_GT(t, previous);
      EXPECT_NEAR(t, -student_t_quantile(1.0 - p, v), 1e-12 * (1.0 + std::abs(t)));
      previous = t;
    }
  }
  EXPECT_EQ(student_t_quantile(0.5, 7.0), 0.0);
  EXPECT_NEAR(student_t_quantile(0.975, 1e8), 1.959963984540054, 1e-6);
}

TEST(StudentT, RefusesWhatHasNoQuantile) {
  for (const double p : {0.0, 1.0, -0.5, std::nan("")}) {
    EXPECT_THROW(student_t_quantile(p, 3.0), std::invalid_argument);
  }
  for (const double v : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    EXPECT_THROW(student_t_quantile(0.9, v), std::invalid_argument);
  }
}

// Expected numbers: scipy.stats.t.interval(0.95, 4, mean, sem).
TEST(ConfidenceInterval, AgreesWithScipy) {
  const std::vector<double> values = {0.4, 0.1, 0.35, 0.2, -0.05};
  const Interval interval = confidence_interval(values);
  EXPECT_DOUBLE_EQ(interval.mean, 0.2);
  EXPECT_NEAR(interval.low, -0.028108242068745737, 1e-13);
  EXPECT_NEAR(interval.high, 0.42810824206874576, 1e-13);
}

TEST(ConfidenceInterval, IsUnboundedForASingleValue) {
  const Interval interval = confidence_interval(std::vector<double>{3.0});
  EXPECT_EQ(interval.mean, 3.0);
  EXPECT_EQ(interval.low, -HUGE_VAL);
  EXPECT_EQ(interval.high, HUGE_VAL);
}

TEST(ConfidenceInterval, RefusesWhatHasNoMean) {
  EXPECT_THROW(confidence_interval({}), std::invalid_argument);
  EXPECT_THROW(confidence_interval(std::vector<double>{1.0, std::nan("")}), std::invalid_argument);
  EXPECT_THROW(confidence_interval(std::vector<double>{1.0, 2.0}, 1.0), std::invalid_argument);
}

// 5,000 experiments: the share that misses has a deviation of 0.31 %; a false alarm needs 5 of
// them.
TEST(ConfidenceInterval, MissesTheTruthAsOftenAsItSays) {
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal(1.0, 2.0);
  for (const std::size_t n : {2U, 3U, 5U}) {
    int num_missed = 0;
    for (int experiment = 0; experiment < 5'000; ++experiment) {
      std::vector<double> values(n);
      for (double& value : values) value = normal(engine);
      const Interval interval = confidence_interval(values);
      num_missed += interval.low > 1.0 || interval.high < 1.0 ? 1 : 0;
    }
    EXPECT_NEAR(num_missed / 5'000.0, 0.05, 0.016) << n << " values";
  }
}

TEST(Verdict, SupportsADifferenceThatIsLargeForItsSpread) {
  const Verdict verdict = judge_differences(std::vector<double>{3.3, 3.5, 3.0});
  EXPECT_EQ(verdict.num_pairs, 3U);
  EXPECT_NEAR(verdict.mean, 3.26666666666667, 1e-12);
  EXPECT_GT(verdict.low, 0.0);
  EXPECT_TRUE(verdict.is_supported);
  const Verdict reversed = judge_differences(std::vector<double>{-3.3, -3.5, -3.0});
  EXPECT_TRUE(reversed.is_supported);
  EXPECT_DOUBLE_EQ(reversed.high, -verdict.low);
}

TEST(Verdict, SupportsNothingFromOnePairOrFromNoise) {
  EXPECT_FALSE(judge_differences(std::vector<double>{5.0}).is_supported);
  EXPECT_FALSE(judge_differences(std::vector<double>{0.4, 0.1, 0.35, 0.2, -0.05}).is_supported);
  EXPECT_TRUE(judge_differences(std::vector<double>{0.4, 0.1, 0.35, 0.2, -0.05}, 0.9).is_supported);
  EXPECT_FALSE(judge_differences(std::vector<double>{0.0, 0.0, 0.0}).is_supported);
}

TEST(Verdict, NeedsAPair) { EXPECT_THROW(judge_differences({}), std::invalid_argument); }

}  // namespace
}  // namespace tamis::analysis
