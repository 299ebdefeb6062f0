#include "training/trainer/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

namespace tamis::training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunResult result(double accuracy, double seconds, double pruned = 0.0) {
  return {.accuracy = accuracy,
          .pruned_share = pruned,
          .train_seconds = seconds,
          .prune_seconds = 0.01 * seconds};
}

TEST(RunSummary, AddsUpTheEpochs) {
  const std::vector<EpochMetrics> metrics = {{.samples = 100,
                                              .pruned = 0,
                                              .test_accuracy = 0.95,
                                              .train_seconds = 2.0,
                                              .prune_seconds = 0.1},
                                             {.samples = 60,
                                              .pruned = 40,
                                              .test_accuracy = 0.9,
                                              .train_seconds = 1.0,
                                              .prune_seconds = 0.2}};
  const RunResult run = summarize_run(metrics);
  EXPECT_EQ(run.accuracy, 0.9);  // of the last epoch, not the best
  EXPECT_DOUBLE_EQ(run.pruned_share, 0.2);
  EXPECT_DOUBLE_EQ(run.train_seconds, 3.0);
  EXPECT_DOUBLE_EQ(run.prune_seconds, 0.1 + 0.2);
  EXPECT_THROW(summarize_run({}), std::invalid_argument);
}

TEST(Summary, ComparesRunByRun) {
  const Summary summary = summarize(
      {{"full", {result(0.90, 10.0), result(0.92, 20.0), result(0.91, 10.0)}},
       {"seta", {result(0.91, 6.0, 0.4), result(0.92, 10.0, 0.4), result(0.93, 7.0, 0.4)}}},
      {5, 6, 7}, "full");
  const SummaryRow& full = summary.rows[0];
  EXPECT_DOUBLE_EQ(full.accuracy_mean, 0.91);
  EXPECT_NEAR(full.accuracy_deviation, 0.01, 1e-12);
  EXPECT_FALSE(full.difference);
  EXPECT_FALSE(full.time_saved);
  const SummaryRow& seta = summary.rows[1];
  EXPECT_DOUBLE_EQ(seta.pruned_share, 0.4);
  EXPECT_NEAR(*seta.time_saved, (0.4 + 0.5 + 0.3) / 3, 1e-12);
  EXPECT_NEAR(seta.prune_overhead, 0.01, 1e-12);
  // Differences 0.01, 0, 0.02: deviation 0.01, t(0.975, 2) = 4.302653.
  ASSERT_TRUE(seta.difference);
  EXPECT_NEAR(seta.difference->mean, 0.01, 1e-12);
  EXPECT_NEAR(seta.difference->high - 0.01, 4.302653 * 0.01 / std::sqrt(3.0), 1e-7);
  EXPECT_FALSE(seta.difference->is_supported);
}

TEST(Summary, CallsADifferenceRealOnlyIfTheIntervalExcludesZero) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(0.0, 0.002);
  int num_supported = 0;
  for (int repeat = 0; repeat < 300; ++repeat) {
    MethodRuns full{"full", {}};
    MethodRuns other{"other", {}};
    for (int seed = 0; seed < 3; ++seed) {
      full.runs.push_back(result(0.9 + noise(random), 10.0));
      other.runs.push_back(result(0.9 + 0.003 * (repeat % 3 - 1) + noise(random), 8.0));
    }
    const Summary summary = summarize({full, other}, {0, 1, 2}, "full");
    const auto& difference = *summary.rows[1].difference;
    const bool excludes_zero = difference.low > 0.0 || difference.high < 0.0;
    num_supported += excludes_zero ? 1 : 0;
    EXPECT_EQ(difference.is_supported, excludes_zero);
    const std::string text = format_summary(summary, true);
    const std::string row = text.substr(text.find("other"), text.find("\n\n") - text.find("other"));
    EXPECT_EQ(row.find("within noise") == std::string::npos, excludes_zero) << text;
    EXPECT_EQ(row.find("higher") != std::string::npos, difference.low > 0.0) << text;
    EXPECT_EQ(row.find("lower") != std::string::npos, difference.high < 0.0) << text;
    EXPECT_EQ(to_json(summary)["rows"][1]["difference"]["supported"], excludes_zero);
  }
  EXPECT_GT(num_supported, 10);  // both cases were there
  EXPECT_LT(num_supported, 290);
}

TEST(Summary, OfOneSeedHasNoIntervalAndSaysSo) {
  const Summary summary = summarize(
      {{"full", {result(0.90, 10.0)}}, {"bls-seta", {result(0.95, 8.0, 0.2)}}}, {4}, "full");
  EXPECT_FALSE(summary.rows[1].difference);
  EXPECT_NEAR(*summary.rows[1].time_saved, 0.2, 1e-12);
  const std::string text = format_summary(summary, true);
  EXPECT_THAT(text, HasSubstr("One seed: there is no interval"));
  EXPECT_THAT(text, Not(HasSubstr("higher")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  const Json json = to_json(summary);
  EXPECT_TRUE(json["rows"][1]["difference"].is_null());
  EXPECT_EQ(Json::parse(json.dump())["rows"][1]["accuracy_deviation"], nullptr);
}

TEST(Summary, HasTheFieldsThatOtherToolsRead) {
  const Json json = to_json(summarize({{"full", {result(0.90, 10.0), result(0.91, 10.0)}},
                                       {"seta", {result(0.91, 6.0), result(0.92, 6.0)}}},
                                      {0, 1}, "full"));
  EXPECT_EQ(json["confidence"], 0.95);
  const Json& row = json["rows"][1];
  EXPECT_EQ(row["method"], "seta");
  EXPECT_EQ(row["num_seeds"], 2);
  for (const char* key : {"accuracy_mean", "accuracy_deviation", "pruned_share", "time_saved",
                          "train_seconds_mean", "prune_overhead"}) {
    EXPECT_TRUE(row[key].is_number()) << key;
  }
  for (const char* key : {"mean", "low", "high", "supported"}) {
    EXPECT_TRUE(row["difference"].contains(key)) << key;
  }
  EXPECT_TRUE(json["rows"][0]["difference"].is_null());
  EXPECT_TRUE(json["rows"][0]["time_saved"].is_null());
}

TEST(Summary, ColumnsAreAlignedWithAndWithoutUtf8) {
  const Summary summary =
      summarize({{"full", {result(0.90, 10.0), result(0.91, 10.0)}},
                 {"random-dynamic", {result(0.91, 6.0, 0.25), result(0.92, 6.0, 0.25)}}},
                {0, 1}, "full");
  for (const bool utf8 : {true, false}) {
    const std::string text = format_summary(summary, utf8);
    EXPECT_EQ(text.find("±") != std::string::npos, utf8);
    const std::size_t second = text.find("random-dynamic");
    const std::size_t first = text.rfind("full ", second);
    const std::string row = text.substr(first, second - first);
    EXPECT_EQ(row.find("0.0 %"), text.substr(second).find("25.0 %") + 1) << text;
  }
}

TEST(Summary, RefusesWhatDoesNotFitTogether) {
  const MethodRuns full{"full", {result(0.9, 1.0)}};
  EXPECT_THROW(summarize({full}, {0, 1}, "full"), std::invalid_argument);
  EXPECT_THROW(summarize({full}, {0}, "half"), std::invalid_argument);
  EXPECT_THROW(summarize({{"full", {}}}, {}, "full"), std::invalid_argument);
}

}  // namespace
}  // namespace tamis::training
