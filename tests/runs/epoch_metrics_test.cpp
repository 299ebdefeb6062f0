#include "runs/epoch_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace tamis::runs {
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
          .learning_rate = 1e-7,
          .train_seconds = 12.5,
          .prune_seconds = 0.001,
          .test_seconds = 1.5,
          .processor_seconds = 23.5,
          .values = {{"train_loss", 0.1 + 0.2}, {"test_accuracy", 1.0 / 3.0}},
          .scores = make_histogram(std::vector<float>{0.1F, 0.7F, 0.3F})};
}

EpochMetrics read(const Json& json) {
  return epoch_from_json(json, classification_metrics(), "metrics.jsonl: line 3");
}

TEST(EpochMetrics, SurviveJsonExactly) {
  EpochMetrics metrics = some_metrics();
  EXPECT_EQ(read(Json::parse(to_json(metrics).dump())), metrics);
  metrics.scores.reset();
  metrics.processor_seconds.reset();
  const Json json = to_json(metrics);
  EXPECT_FALSE(json.contains("processor_seconds"));
  EXPECT_FALSE(json.contains("score_histogram"));
  EXPECT_EQ(read(json), metrics);
}

TEST(EpochMetrics, NeedOnlyWhatEveryProgramKnows) {
  const EpochMetrics metrics = read(Json::parse(
      R"({"epoch": 2, "samples": 70, "pruned": 30, "train_seconds": 1, "values": {}})"));
  EXPECT_EQ(metrics, (EpochMetrics{.epoch = 2, .samples = 70, .pruned = 30, .train_seconds = 1.0}));
  EXPECT_TRUE(std::isnan(metrics.value(headline_of(classification_metrics()))));
}

TEST(EpochMetrics, OfVersion1AreRead) {
  const EpochMetrics metrics = read(Json::parse(
      R"({"epoch": 2, "samples": 70, "pruned": 30, "steps": 5, "train_loss": 0.3,
          "train_accuracy": 0.8, "test_loss": null, "test_accuracy": 0.9, "learning_rate": 0.1,
          "train_seconds": 12.5, "prune_seconds": 0.5, "test_seconds": 1.5})"));
  EXPECT_EQ(metrics.values.at("train_loss"), 0.3);
  EXPECT_EQ(metrics.values.at("train_accuracy"), 0.8);
  EXPECT_EQ(metrics.values.at("test_accuracy"), 0.9);
  EXPECT_TRUE(std::isnan(metrics.values.at("test_loss")));
  EXPECT_EQ(metrics.learning_rate, 0.1);
  EXPECT_EQ(metrics.steps, 5U);
}

TEST(EpochMetrics, SayWhichLineIsDamaged) {
  Json json = to_json(some_metrics());
  json.erase("pruned");
  EXPECT_THAT([&] { read(json); },
              ::testing::ThrowsMessage<std::runtime_error>(::testing::AllOf(
                  ::testing::HasSubstr("line 3"), ::testing::HasSubstr("pruned"))));
}

}  // namespace
}  // namespace tamis::runs
