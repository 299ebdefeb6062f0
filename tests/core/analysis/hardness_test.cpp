#include "tamis/analysis/hardness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tamis::analysis {
namespace {

const float kNan = std::nanf("");

std::vector<std::uint32_t> samples_of(const std::vector<Hardness>& all) {
  std::vector<std::uint32_t> samples;
  for (const Hardness& one : all) samples.push_back(one.sample);
  return samples;
}

TEST(HardnessRanking, PutsWhatIsAlwaysHardBeforeWhatWasHardOnce) {
  HardnessRanking ranking(4);
  ranking.add(std::vector<float>{1.0F, 3.0F, 2.0F, 9.0F});
  ranking.add(std::vector<float>{1.0F, 3.0F, 2.0F, 0.1F});
  ranking.add(std::vector<float>{0.5F, 3.0F, 2.0F, 0.1F});
  const auto all = ranking.hardest(10);
  EXPECT_EQ(samples_of(all), (std::vector<std::uint32_t>{1, 2, 3, 0}));
  EXPECT_NEAR(all[0].rank, (2.0 / 3.0 + 1.0 + 1.0) / 3.0, 1e-12);
  EXPECT_NEAR(all[0].hard_share, 2.0 / 3.0, 1e-12);
  EXPECT_EQ(all[0].num_hard_in_a_row, 2U);
  EXPECT_EQ(all[0].score, 3.0F);
  EXPECT_EQ(all[2].num_hard_in_a_row, 0U) << "hard in the first snapshot only";
  EXPECT_EQ(samples_of(ranking.hardest(2)), (std::vector<std::uint32_t>{1, 2}));
}

TEST(HardnessRanking, LeavesOutSamplesWithoutAScore) {
  HardnessRanking ranking(3);
  EXPECT_TRUE(ranking.hardest(3).empty());
  ranking.add(std::vector<float>{kNan, 2.0F, kNan});
  EXPECT_EQ(ranking.hardest(3)[0].rank, 1.0) << "alone";
  ranking.add(std::vector<float>{kNan, 2.0F, 5.0F});
  EXPECT_EQ(samples_of(ranking.hardest(3)), (std::vector<std::uint32_t>{2, 1}));
  EXPECT_EQ(ranking.num_scored(), 2U);
}

TEST(HardnessRanking, SharesRanksAndBreaksTiesByScoreAndIndex) {
  HardnessRanking ranking(4);
  ranking.add(std::vector<float>{1.0F, 1.0F, 1.0F, 1.0F});
  for (const Hardness& one : ranking.hardest(4)) EXPECT_EQ(one.rank, 0.5);
  EXPECT_EQ(samples_of(ranking.hardest(4)), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

// Wrong labels have high losses with much noise; many looks find them better than the last one.
TEST(HardnessRanking, FindsWrongLabelsBetterThanTheLastScoreAlone) {
  constexpr std::size_t kSamples = 2000;
  constexpr std::size_t kWrong = 200;
  std::mt19937_64 random(5);
  std::normal_distribution<float> noise(0.0F, 1.0F);
  HardnessRanking all(kSamples);
  HardnessRanking last(kSamples);
  for (int epoch = 0; epoch < 20; ++epoch) {
    std::vector<float> scores(kSamples);
    for (std::size_t i = 0; i < kSamples; ++i) {
      scores[i] = (i < kWrong ? 1.5F : 0.0F) + noise(random);
    }
    all.add(scores);
    if (epoch == 19) last.add(scores);
  }
  const auto precision = [](const HardnessRanking& ranking) {
    double found = 0.0;
    for (const Hardness& one : ranking.hardest(kWrong)) found += one.sample < kWrong ? 1.0 : 0.0;
    return found / kWrong;
  };
  EXPECT_GT(precision(all), 0.95);
  EXPECT_LT(precision(last), 0.7);
}

TEST(HardnessRanking, RefusesScoresOfAnotherDataSet) {
  HardnessRanking ranking(3);
  EXPECT_THROW(ranking.add(std::vector<float>{1.0F}), std::invalid_argument);
}

}  // namespace
}  // namespace tamis::analysis
