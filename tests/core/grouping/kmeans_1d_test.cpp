#include "core/grouping/kmeans_1d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <ostream>
#include <random>
#include <string>

#include "support/golden.h"
#include "support/optimal_grouping.h"

namespace tamis::detail {
namespace {

using Random = std::mt19937_64;

double uniform(Random& random) { return std::uniform_real_distribution<double>(0, 1)(random); }
double normal(Random& random) { return std::normal_distribution<double>(0, 1)(random); }
double exponential(Random& random) { return std::exponential_distribution<double>(1)(random); }
double gamma(Random& random) { return std::gamma_distribution<double>(2, 1)(random); }

struct Distribution {
  std::string name;
  std::function<double(Random&)> draw;
  friend void PrintTo(const Distribution& it, std::ostream* out) { *out << it.name; }
};

std::vector<Distribution> distributions() {
  return {
      {"Gamma", gamma},
      {"Exponential", exponential},
      {"NarrowNormal", [](Random& r) { return 2.3 + 0.01 * normal(r); }},
      {"HeavyTail",
       [](Random& r) { return uniform(r) < 0.6 ? 1e-3 * uniform(r) : std::exp(2 * normal(r)); }},
      {"Tied", [](Random& r) { return std::floor(50 * uniform(r) * uniform(r)) / 7; }},
      {"FiveModes",
       [](Random& r) { return std::sqrt(static_cast<double>(r() % 5)) + 0.1 * normal(r); }},
      {"Uniform", uniform},
      {"Negative", [](Random& r) { return -gamma(r); }},
      {"BothSigns", normal},
      {"HugeOffset", [](Random& r) { return 1e6 + gamma(r); }},
      {"HugeOffsetWideRange", [](Random& r) { return 1e6 + 1e4 * gamma(r); }},
      {"TinyRange", [](Random& r) { return 1 + 1e-6 * uniform(r); }},
      {"Denormal", [](Random& r) { return 1e-41 * exponential(r); }},
      {"NearlyTheLargestFloats", [](Random& r) { return 6.8e38 * (uniform(r) - 0.5); }},
      {"Cauchy", [](Random& r) { return std::tan(3.14159 * (uniform(r) - 0.5)); }},
      {"ManyZeros", [](Random& r) { return uniform(r) < 0.3 ? 0.0 : exponential(r); }},
      {"TightModes", [](Random& r) { return static_cast<double>(r() % 3) + 1e-5 * normal(r); }},
      {"RareOutliers", [](Random& r) { return 5 + normal(r) * (uniform(r) < 3e-5 ? 200 : 0.01); }},
      {"AllScales", [](Random& r) { return std::exp(30 * uniform(r) - 15); }},
  };
}

std::vector<float> draw(const Distribution& distribution, std::size_t n, Random& random) {
  std::vector<float> scores(n);
  for (float& score : scores) score = static_cast<float>(distribution.draw(random));
  return scores;
}

// Everything but the quality of the groups: they are the members, in order, without gaps.
void expect_valid(const ScoreGroups& result, std::vector<float> members, std::size_t num_groups) {
  std::sort(members.begin(), members.end());
  std::size_t num_distinct = members.empty() ? 0 : 1;
  for (std::size_t i = 1; i < members.size(); ++i) num_distinct += members[i] != members[i - 1];
  EXPECT_EQ(result.groups.size(), std::min(num_groups, num_distinct));
  std::size_t begin = 0;
  long double squares = 0.0L;
  for (const ScoreGroup& group : result.groups) {
    const std::size_t end = begin + group.size;
    ASSERT_GT(group.size, 0U);
    ASSERT_LE(end, members.size());
    EXPECT_EQ(group.low, members[begin]);
    EXPECT_EQ(group.high, members[end - 1]);
    if (begin > 0) {
      EXPECT_LT(members[begin - 1], group.low);
    }
    long double mean = 0.0L;
    for (std::size_t i = begin; i < end; ++i) mean += members[i];
    mean /= static_cast<long double>(group.size);
    for (std::size_t i = begin; i < end; ++i) squares += (members[i] - mean) * (members[i] - mean);
    const double scale = std::max(std::fabs(group.low), std::fabs(group.high));
    EXPECT_NEAR(group.center, static_cast<double>(mean), 1e-14 * scale);
    begin = end;
  }
  EXPECT_EQ(begin, members.size());
  const auto expected = static_cast<double>(squares);
  EXPECT_NEAR(result.within_group_sum_of_squares, expected, 1e-9 * expected);
}

ScoreGroups group_all(const std::vector<float>& scores, std::size_t num_groups) {
  return kmeans_1d(scores, Bitmap(scores.size(), true), num_groups);
}

class Kmeans1dOf : public testing::TestWithParam<Distribution> {};

TEST_P(Kmeans1dOf, FewScoresIsOptimal) {
  Random random(1);
  for (int trial = 0; trial < 150; ++trial) {
    const auto n = static_cast<std::size_t>(std::exp(uniform(random) * std::log(120.0)));
    const std::size_t num_groups = 1 + random() % 20;
    const std::vector<float> scores = draw(GetParam(), n, random);
    const ScoreGroups result = group_all(scores, num_groups);
    expect_valid(result, scores, num_groups);
    std::vector<double> sorted(scores.begin(), scores.end());
    std::sort(sorted.begin(), sorted.end());
    const double optimum = test::optimal_grouping(sorted, num_groups).cost;
    ASSERT_LE(result.within_group_sum_of_squares, optimum * (1 + 1e-9)) << n << " " << num_groups;
  }
}

TEST_P(Kmeans1dOf, ThousandsOfScoresIsOptimal) {
  Random random(2);
  for (int trial = 0; trial < 8; ++trial) {
    const auto n = static_cast<std::size_t>(100 * std::exp(uniform(random) * std::log(300.0)));
    const std::size_t num_groups = 1 + random() % 20;
    const std::vector<float> scores = draw(GetParam(), n, random);
    const ScoreGroups result = group_all(scores, num_groups);
    expect_valid(result, scores, num_groups);
    const double optimum = test::FastOptimum(scores).cost(num_groups);
    // The reference itself loses digits where scores are of many scales.
    ASSERT_LE(result.within_group_sum_of_squares, optimum * (1 + 1.1e-6)) << n << " " << num_groups;
  }
}

TEST_P(Kmeans1dOf, ManyScoresIsWithinItsTolerance) {
  Random random(3);
  for (const std::size_t num_groups : {2U, 5U, 10U, 20U}) {
    const std::size_t n = 66000 + random() % 134000 / num_groups;
    const std::vector<float> scores = draw(GetParam(), n, random);
    const ScoreGroups result = group_all(scores, num_groups);
    expect_valid(result, scores, num_groups);
    const double optimum = test::FastOptimum(scores).cost(num_groups);
    ASSERT_LE(result.within_group_sum_of_squares, optimum * (1 + 1.1e-6)) << n << " " << num_groups;
  }
}

INSTANTIATE_TEST_SUITE_P(, Kmeans1dOf, testing::ValuesIn(distributions()),
                         [](const auto& test) { return test.param.name; });

TEST(Kmeans1d, IsNoWorseThanScikitLearn) {
  std::map<std::string, std::vector<float>> scores;
  for (const auto& entry : test::load_golden("kmeans_1d.json")) {
    const auto name = entry["name"].get<std::string>();
    if (!entry["scores"].is_null()) scores[name] = entry["scores"].get<std::vector<float>>();
    const auto num_groups = entry["num_groups"].get<std::size_t>();
    const ScoreGroups result = group_all(scores.at(name), num_groups);
    expect_valid(result, scores.at(name), num_groups);
    EXPECT_LE(result.within_group_sum_of_squares, entry["wcss_sklearn"].get<double>() * (1 + 1e-12))
        << name << " in " << num_groups;
  }
}

TEST(Kmeans1d, OfAMillionScoresIsWithinItsTolerance) {
  Random random(4);
  const std::vector<float> scores = draw({"Gamma", gamma}, 1'200'001, random);
  const ScoreGroups result = group_all(scores, 3);
  expect_valid(result, scores, 3);
  EXPECT_LE(result.within_group_sum_of_squares, test::FastOptimum(scores).cost(3) * (1 + 1e-5));
}

TEST(Kmeans1d, OfManyGroupsIsNearTheOptimum) {
  Random random(5);
  const std::vector<float> scores = draw({"Gamma", gamma}, 70'000, random);
  const ScoreGroups result = group_all(scores, 80);
  expect_valid(result, scores, 80);
  EXPECT_LE(result.within_group_sum_of_squares, test::FastOptimum(scores).cost(80) * (1 + 1e-4));
}

// Half of the scores are 1; their group costs nothing, so the rest is grouped as if alone, although
// it is 10^12 times smaller.
TEST(Kmeans1d, SeesTheSmallestScaleWhenTheLargeOneCostsNothing) {
  Random random(6);
  for (const std::size_t n : {300U, 40'000U, 150'000U}) {
    std::vector<float> small(n / 2);
    for (float& score : small) score = static_cast<float>(1e-12 * uniform(random));
    std::vector<float> scores = small;
    scores.resize(n, 1.0F);
    std::shuffle(scores.begin(), scores.end(), random);
    const ScoreGroups result = group_all(scores, 7);
    expect_valid(result, scores, 7);
    EXPECT_LE(result.within_group_sum_of_squares, test::FastOptimum(small).cost(6) * (1 + 1e-5));
  }
}

TEST(Kmeans1d, LooksOnlyAtMembers) {
  Random random(7);
  for (const std::size_t n : {1U, 63U, 64U, 1000U, 150'001U}) {
    std::vector<float> scores(n);
    std::vector<float> chosen;
    Bitmap members(n);
    for (std::size_t i = 0; i < n; ++i) {
      scores[i] = std::numeric_limits<float>::quiet_NaN();
      if (i > 0 && uniform(random) > 0.7) continue;
      scores[i] = static_cast<float>(gamma(random));
      chosen.push_back(scores[i]);
      members.set(i);
    }
    const ScoreGroups result = kmeans_1d(scores, members, 5);
    expect_valid(result, chosen, 5);
    EXPECT_LE(result.within_group_sum_of_squares, test::FastOptimum(chosen).cost(5) * (1 + 1e-5));
  }
}

TEST(Kmeans1d, GivesEqualScoresOneGroup) {
  for (const std::size_t n : {1U, 2U, 1000U, 100'000U}) {
    const ScoreGroups result = group_all(std::vector<float>(n, 0.7F), 5);
    ASSERT_EQ(result.groups.size(), 1U);
    EXPECT_EQ(result.groups[0].size, n);
    EXPECT_EQ(result.groups[0].low, 0.7F);
    EXPECT_EQ(result.groups[0].high, 0.7F);
    EXPECT_EQ(result.groups[0].center, static_cast<double>(0.7F));
    EXPECT_EQ(result.within_group_sum_of_squares, 0.0);
  }
}

TEST(Kmeans1d, GivesEveryDistinctScoreAGroupIfTheGroupsSuffice) {
  Random random(8);
  const std::vector<float> values = {-3.0F, -1e-30F, 0.0F, 1e-40F, 5.0F, 3e38F};
  for (const std::size_t n : {50U, 100'000U}) {
    std::vector<float> scores(n);
    for (float& score : scores) score = values[random() % values.size()];
    for (const std::size_t num_groups : {6U, 7U, 20U}) {
      const ScoreGroups result = group_all(scores, num_groups);
      ASSERT_EQ(result.groups.size(), values.size());
      for (std::size_t j = 0; j < values.size(); ++j) EXPECT_EQ(result.groups[j].low, values[j]);
      EXPECT_EQ(result.within_group_sum_of_squares, 0.0);
    }
  }
}

TEST(Kmeans1d, TakesBothZerosForTheSameScore) {
  for (const std::size_t n : {10U, 100'000U}) {
    std::vector<float> scores(n, 0.0F);
    for (std::size_t i = 0; i < n; i += 2) scores[i] = -0.0F;
    scores[3] = 1.0F;
    const ScoreGroups result = group_all(scores, 3);
    ASSERT_EQ(result.groups.size(), 2U);
    EXPECT_EQ(result.groups[0].size, n - 1);
  }
}

TEST(Kmeans1d, FindsGroupsThatAreFarFromAllOtherScores) {
  std::vector<float> scores(100'000);
  Random random(9);
  for (float& score : scores) score = static_cast<float>(1.0 + 1e-3 * uniform(random));
  scores[12'345] = -1e30F;
  scores[54'321] = 1e30F;
  const ScoreGroups result = group_all(scores, 5);
  expect_valid(result, scores, 5);
  ASSERT_EQ(result.groups.size(), 5U);
  EXPECT_EQ(result.groups.front().size, 1U);
  EXPECT_EQ(result.groups.back().size, 1U);
  EXPECT_NEAR(result.within_group_sum_of_squares, 1e5 * 1e-6 / 12 / 9, 2e-5);
}

TEST(Kmeans1d, OfNothingIsNothing) {
  EXPECT_TRUE(kmeans_1d({}, Bitmap(), 3).groups.empty());
  EXPECT_TRUE(kmeans_1d(std::vector<float>{1.0F, 2.0F}, Bitmap(2), 3).groups.empty());
}

TEST(Kmeans1d, RefusesNoGroupsAndMembersOfOtherScores) {
  const std::vector<float> scores = {1.0F, 2.0F};
  EXPECT_THROW(kmeans_1d(scores, Bitmap(2, true), 0), std::invalid_argument);
  EXPECT_THROW(kmeans_1d(scores, Bitmap(3, true), 2), std::invalid_argument);
}

}  // namespace
}  // namespace tamis::detail
