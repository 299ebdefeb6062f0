#include "tamis/analysis/correlation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace tamis::analysis {
namespace {

const double kNaN = std::nan("");
const std::vector<double> kX = {1, 2, 2, 3, 5, 5, 5, 8};
const std::vector<double> kY = {2, 1, 4, 4, 3, 9, 7, 7};

std::vector<double> random_values(std::size_t count, std::uint64_t seed, int num_distinct = 0) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) {
    value = num_distinct > 0 ? static_cast<double>(engine() % static_cast<unsigned>(num_distinct))
                             : normal(engine);
  }
  return values;
}

// Spearman with ranks counted in O(n^2).
double spearman_by_definition(const std::vector<double>& x, const std::vector<double>& y) {
  const auto ranks = [](const std::vector<double>& values) {
    std::vector<double> result;
    for (const double value : values) {
      const auto below = std::count_if(values.begin(), values.end(),
                                       [value](double other) { return other < value; });
      const auto equal = std::count(values.begin(), values.end(), value);
      result.push_back(static_cast<double>(below) + 0.5 * static_cast<double>(equal + 1));
    }
    return result;
  };
  return pearson(ranks(x), ranks(y));
}

// Expected numbers: scipy.stats.pearsonr and spearmanr.
TEST(Correlation, AgreesWithScipyOnValuesWithTies) {
  EXPECT_NEAR(pearson(kX, kY), 0.7095301883685984, 1e-14);
  EXPECT_NEAR(spearman(kX, kY), 0.7144097497387378, 1e-14);
}

TEST(Correlation, IsTheSameForFloatsAndDoubles) {
  const std::vector<float> x(kX.begin(), kX.end());
  const std::vector<float> y(kY.begin(), kY.end());
  EXPECT_EQ(pearson(x, y), pearson(kX, kY));
  EXPECT_EQ(spearman(x, y), spearman(kX, kY));
  EXPECT_EQ(top_overlap(x, y, 0.4), top_overlap(kX, kY, 0.4));
}

TEST(Pearson, IsOneOnALineAndMinusOneOnAFallingOne) {
  const std::vector<double> x = random_values(1000, 1);
  std::vector<double> y = x;
  for (double& value : y) value = 1e6 + 3.0 * value;
  EXPECT_NEAR(pearson(x, y), 1.0, 1e-12);
  for (double& value : y) value = -value;
  EXPECT_NEAR(pearson(x, y), -1.0, 1e-12);
}

TEST(Pearson, SurvivesHugeAndTinyValues) {
  for (const double scale : {1e-300, 1e300}) {
    std::vector<double> x = kX;
    for (double& value : x) value *= scale;
    EXPECT_NEAR(pearson(x, kY), pearson(kX, kY), 1e-14);
  }
}

TEST(Spearman, EqualsItsDefinitionWithAndWithoutTies) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const int num_distinct = seed % 2 == 0 ? 0 : 7;
    const std::vector<double> x = random_values(2 + seed, 2 * seed, num_distinct);
    const std::vector<double> y = random_values(2 + seed, 2 * seed + 1, num_distinct);
    const double expected = spearman_by_definition(x, y);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(spearman(x, y)));
    } else {
      EXPECT_NEAR(spearman(x, y), expected, 1e-13);
    }
  }
}

TEST(Spearman, DoesNotChangeWhenAValueIsReplacedByAnIncreasingFunctionOfIt) {
  const std::vector<double> x = random_values(500, 3);
  const std::vector<double> y = random_values(500, 4);
  std::vector<double> bent = x;
  for (double& value : bent) value = std::exp(3.0 * value);
  EXPECT_EQ(spearman(bent, y), spearman(x, y));
  EXPECT_NEAR(spearman(bent, x), 1.0, 1e-14);
  EXPECT_EQ(spearman(y, x), spearman(x, y));
}

TEST(Spearman, AcceptsInfinitiesWhichPearsonCannot) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> x = {-infinity, 1.0, 2.0, infinity};
  const std::vector<double> y = {1.0, 2.0, 3.0, 4.0};
  EXPECT_DOUBLE_EQ(spearman(x, y), 1.0);
  EXPECT_TRUE(std::isnan(pearson(x, y)));
}

TEST(Correlation, IgnoresPairsWithANaN) {
  std::vector<double> x = kX;
  std::vector<double> y = kY;
  x.insert(x.begin() + 3, {kNaN, 100.0, kNaN});
  y.insert(y.begin() + 3, {100.0, kNaN, kNaN});
  EXPECT_EQ(pearson(x, y), pearson(kX, kY));
  EXPECT_EQ(spearman(x, y), spearman(kX, kY));
  EXPECT_EQ(top_overlap(x, y, 0.5), top_overlap(kX, kY, 0.5));
}

TEST(Correlation, IsNaNWhereItIsUndefined) {
  // The rounded mean of ten times 0.1 is not 0.1.
  const std::vector<double> constant(10, 0.1);
  const std::vector<double> rising = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_TRUE(std::isnan(pearson(constant, rising)));
  EXPECT_TRUE(std::isnan(pearson(rising, constant)));
  EXPECT_TRUE(std::isnan(spearman(rising, constant)));
  const std::vector<double> one_pair = {1.0, kNaN};
  const std::vector<double> two = {1.0, 2.0};
  EXPECT_TRUE(std::isnan(pearson(one_pair, two)));
  EXPECT_TRUE(std::isnan(spearman(one_pair, two)));
  EXPECT_TRUE(std::isnan(top_overlap(one_pair, two)));
  EXPECT_TRUE(std::isnan(spearman(std::vector<double>{}, std::vector<double>{})));
}

TEST(Correlation, RefusesVectorsOfDifferentLength) {
  const std::vector<double> two = {1.0, 2.0};
  EXPECT_THROW(pearson(kX, two), std::invalid_argument);
  EXPECT_THROW(top_overlap(kX, two), std::invalid_argument);
  try {
    spearman(kX, two);
    FAIL() << "different lengths were accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "spearman: x and y must have the same length, got 8 and 2");
  }
}

TEST(TopOverlap, CountsCommonMembersOfTheTop) {
  const std::vector<double> x = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  const std::vector<double> y = {10, 1, 9, 2, 3, 8, 4, 5, 6, 7};
  EXPECT_DOUBLE_EQ(top_overlap(x, y, 0.3), 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(top_overlap(x, y, 0.1), 1.0);
  EXPECT_DOUBLE_EQ(top_overlap(x, y, 1.0), 1.0);
  std::vector<double> reversed(x.rbegin(), x.rend());
  EXPECT_DOUBLE_EQ(top_overlap(x, reversed, 0.5), 0.0);
  EXPECT_DOUBLE_EQ(top_overlap(x, reversed, 0.01), 0.0);  // at least one sample
}

// By the hypergeometric distribution the deviation is below 0.0015; a false alarm needs 6 of them.
TEST(TopOverlap, OfUnrelatedVectorsIsTheShareItself) {
  const double overlap = top_overlap(random_values(200'000, 5), random_values(200'000, 6), 0.3);
  EXPECT_NEAR(overlap, 0.3, 0.009);
}

TEST(TopOverlap, TakesTheMeanOverAllWaysToBreakTies) {
  // The top two of x are sample 0 and one of 1, 2, 3; of y they are 0 and 1.
  const std::vector<double> x = {9, 5, 5, 5, 1};
  const std::vector<double> y = {9, 8, 3, 2, 1};
  EXPECT_DOUBLE_EQ(top_overlap(x, y, 0.4), (1.0 + 1.0 / 3.0) / 2.0);
  // Both tie everywhere: nothing is known, so chance level.
  const std::vector<double> constant(10, 1.0);
  EXPECT_DOUBLE_EQ(top_overlap(constant, constant, 0.3), 0.3);
}

TEST(TopOverlap, RefusesAShareOutOfRange) {
  for (const double share : {0.0, -0.1, 1.1, kNaN}) {
    EXPECT_THROW(top_overlap(kX, kY, share), std::invalid_argument);
  }
}

}  // namespace
}  // namespace tamis::analysis
