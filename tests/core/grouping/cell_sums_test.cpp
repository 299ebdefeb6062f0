#include "core/grouping/cell_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "core/grouping/score_cells.h"
#include "support/moments.h"

namespace tamis::detail {
namespace {

std::vector<float> random_scores(std::size_t n, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const auto kind = random() % 4;
  std::vector<float> scores(n);
  for (float& score : scores) {
    const double x = normal(random);
    score = static_cast<float>(kind == 0   ? x
                               : kind == 1 ? 2.3 + 0.01 * x
                               : kind == 2 ? std::exp(10.0 * x)
                                           : 1e-44 * x);
  }
  return scores;
}

Bitmap random_members(std::size_t n, std::mt19937_64& random) {
  Bitmap members(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (random() % 4 != 0) members.set(i);
  }
  return members;
}

TEST(ScoreKey, KeepsTheOrderAndGivesTheScoreBack) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> ascending = {-kMax, -2.0F,  -1.0F, -kTiny, 0.0F,
                                        kTiny, 1e-30F, 1.0F,  1.5F,   kMax};
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    EXPECT_EQ(score_of(key_of(ascending[i])), ascending[i]);
    EXPECT_EQ(value_of(key_of(ascending[i])), static_cast<double>(ascending[i]));
    if (i > 0) {
      EXPECT_LT(key_of(ascending[i - 1]), key_of(ascending[i]));
    }
  }
  EXPECT_EQ(key_of(-0.0F), key_of(0.0F));
}

TEST(ScoreKey, SpacingIsTheDistanceToTheNextScore) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 10000; ++trial) {
    const auto key = static_cast<ScoreKey>(random());
    if (!std::isfinite(score_of(key)) || !std::isfinite(score_of(key + 1))) continue;
    EXPECT_EQ(value_of(key) + spacing_at(key), value_of(key + 1)) << key;
  }
}

TEST(CellMap, FindsTheCellThatHoldsTheKey) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 20; ++trial) {
    const std::vector<float> scores = random_scores(2000, random);
    CellMap map = fit_cells(scores, Bitmap(scores.size(), true), trial % 2 == 0);
    EXPECT_LE(map.size(), 8193U);
    for (int split = 0; split < 50; ++split) {
      const std::size_t cell = map.find(key_of(scores[random() % scores.size()]));
      if (cell == map.outside()) continue;
      map.split(cell, std::min(unsigned{map[cell].log2_size}, static_cast<unsigned>(random() % 8)));
    }
    for (const float score : scores) {
      const ScoreKey key = key_of(score);
      const CellMap::Cell& cell = map[map.find(key)];
      EXPECT_EQ(cell.parts, 0U);
      EXPECT_LE(cell.first, key);
      EXPECT_LT(std::int64_t{key}, cell.first + (std::int64_t{1} << cell.log2_size));
    }
  }
}

TEST(CellMap, LeavesFewOfTheSampledScoresOutside) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    const std::vector<float> scores = random_scores(2000, random);
    const Bitmap members(scores.size(), true);
    const CellMap map = fit_cells(scores, members, false);
    EXPECT_EQ(sum_cells(scores, members, map)[map.outside()].count, 0U);
  }
}

TEST(CellSums, GiveTheMomentsOfTheMembersInEachCell) {
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 40; ++trial) {
    const std::vector<float> scores = random_scores(1 + random() % 3000, random);
    const Bitmap members = random_members(scores.size(), random);
    if (members.count() == 0) continue;
    CellMap map = fit_cells(scores, members, false);
    std::map<std::size_t, std::vector<float>> expected;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (members.test(i)) expected[map.find(key_of(scores[i]))].push_back(scores[i]);
    }
    const std::vector<CellSums> sums = sum_cells(scores, members, map);
    std::size_t num_filled = 0;
    for (const CellSums& cell : sums) num_filled += cell.count > 0 ? 1 : 0;
    EXPECT_EQ(num_filled, expected.size());
    for (const auto& [cell, values] : expected) {
      ASSERT_EQ(sums[cell].count, values.size());
      test::expect_moments(values, moments_of(map[cell], sums[cell]), 1e-9);
    }
  }
}

TEST(CellSums, OfPartsIncludeTheirExtremes) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 40; ++trial) {
    const std::vector<float> scores = random_scores(1 + random() % 3000, random);
    const Bitmap members = random_members(scores.size(), random);
    if (members.count() == 0) continue;
    CellMap map = fit_cells(scores, members, true);
    const std::size_t first = map.size();
    for (int split = 0; split < 20; ++split) {
      const std::size_t cell = map.find(key_of(scores[random() % scores.size()]));
      map.split(cell, std::min(3U, unsigned{map[cell].log2_size}));
    }
    const PartSums parts = sum_parts(scores, members, map, first);
    std::map<std::size_t, std::vector<float>> expected;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (members.test(i)) expected[map.find(key_of(scores[i]))].push_back(scores[i]);
    }
    for (std::size_t cell = first; cell < map.size(); ++cell) {
      const std::vector<float>& values = expected[cell];
      if (map[cell].parts != 0) continue;
      ASSERT_EQ(parts.sums[cell - first].count, values.size());
      if (values.empty()) continue;
      test::expect_moments(values, moments_of(map[cell], parts.sums[cell - first]), 1e-9);
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      EXPECT_EQ(score_of(parts.lows[cell - first]), *low);
      EXPECT_EQ(score_of(parts.highs[cell - first]), *high);
    }
  }
}

TEST(CellSums, OfEqualScoresHaveNoSquares) {
  std::vector<float> scores(100000, 0.3F);
  const Bitmap members(scores.size(), true);
  scores[5] = 0.9F;
  const CellMap map = fit_cells(scores, members, true);
  const std::size_t cell = map.find(key_of(0.3F));
  EXPECT_EQ(moments_of(map[cell], sum_cells(scores, members, map)[cell]).squares, 0.0);
}

// So that processes that hold parts of the scores can add up their totals.
TEST(CellSums, OfTwoHalvesAddUpToThoseOfTheWhole) {
  std::mt19937_64 random(6);
  const std::vector<float> scores = random_scores(10000, random);
  const Bitmap all(scores.size(), true);
  Bitmap first(scores.size());
  Bitmap second(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) (random() % 2 == 0 ? first : second).set(i);
  const CellMap map = fit_cells(scores, all, false);
  const auto whole = sum_cells(scores, all, map);
  const auto a = sum_cells(scores, first, map);
  const auto b = sum_cells(scores, second, map);
  for (std::size_t c = 0; c < map.size(); ++c) {
    CellSums sum{.count = a[c].count + b[c].count,
                 .offsets = a[c].offsets + b[c].offsets,
                 .squares_low = a[c].squares_low + b[c].squares_low,
                 .squares_high = a[c].squares_high + b[c].squares_high};
    ASSERT_EQ(sum.count, whole[c].count);
    if (sum.count == 0) continue;
    const Moments x = moments_of(map[c], sum);
    const Moments y = moments_of(map[c], whole[c]);
    EXPECT_EQ(x.offset, y.offset);
    EXPECT_EQ(x.squares, y.squares);
  }
}

}  // namespace
}  // namespace tamis::detail
