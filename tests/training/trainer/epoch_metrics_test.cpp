#include "training/trainer/epoch_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace tamis::training {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ScoreHistogram, CountsEveryScoredSampleOnce) {
  std::vector<float> scores = {kNan, 1.0F, 3.0F, kNan, 1.0F, 2.0F};
  const auto histogram = make_histogram(scores);
  ASSERT_TRUE(histogram);
  EXPECT_EQ(histogram->low, 1.0);
  EXPECT_EQ(histogram->high, 3.0);
  EXPECT_EQ(histogram->counts.front(), 2U);
  EXPECT_EQ(histogram->counts[16], 1U);
  EXPECT_EQ(histogram->counts.back(), 1U);
  EXPECT_EQ(std::accumulate(histogram->counts.begin(), histogram->counts.end(), 0U), 4U);
}

TEST(ScoreHistogram, OfEqualScoresIsOneBin) {
  const auto histogram = make_histogram(std::vector<float>(5, 2.5F));
  ASSERT_TRUE(histogram);
  EXPECT_EQ(histogram->low, histogram->high);
  EXPECT_EQ(histogram->counts.front(), 5U);
}

TEST(ScoreHistogram, OfNothingIsAbsent) {
  EXPECT_FALSE(make_histogram(std::vector<float>{}));
  EXPECT_FALSE(make_histogram(std::vector<float>(3, kNan)));
}

EpochMetrics some_metrics() {
  return {.epoch = 2,
          .samples = 70,
          .pruned = 30,
          .steps = 5,
          .train_loss = 0.1 + 0.2,
          .train_accuracy = 1.0 / 3.0,
          .test_loss = 0.7,
          .test_accuracy = 0.9,
          .learning_rate = 1e-7,
          .train_seconds = 12.5,
          .prune_seconds = 0.001,
          .test_seconds = 1.5,
          .scores = make_histogram(std::vector<float>{0.1F, 0.7F, 0.3F})};
}

TEST(EpochMetrics, SurviveJsonExactly) {
  EpochMetrics metrics = some_metrics();
  EXPECT_EQ(metrics_from_json(Json::parse(to_json(metrics).dump()), "line"), metrics);
  metrics.scores.reset();
  const Json json = to_json(metrics);
  EXPECT_FALSE(json.contains("score_histogram"));
  EXPECT_EQ(metrics_from_json(json, "line"), metrics);
}

TEST(EpochMetrics, SayWhichLineIsDamaged) {
  Json json = to_json(some_metrics());
  json.erase("steps");
  EXPECT_THAT([&] { metrics_from_json(json, "metrics.jsonl, line 3"); },
              ::testing::ThrowsMessage<std::runtime_error>(
                  ::testing::AllOf(::testing::HasSubstr("line 3"), ::testing::HasSubstr("steps"))));
}

TEST(RunningEpoch, MeansAreDefinedBeforeTheFirstStep) {
  EXPECT_EQ(RunningEpoch{}.mean_loss(), 0.0);
  EXPECT_EQ(RunningEpoch{}.accuracy(), 0.0);
  const RunningEpoch running{.steps = 2, .samples = 8, .correct = 6, .loss_sum = 3.0};
  EXPECT_EQ(running.mean_loss(), 1.5);
  EXPECT_EQ(running.accuracy(), 0.75);
}

}  // namespace
}  // namespace tamis::training
