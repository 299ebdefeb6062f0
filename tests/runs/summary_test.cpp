#include "runs/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tamis::runs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

const std::vector<Metric> kAccuracy = {
    {.name = "accuracy", .unit = "fraction", .is_headline = true}};
const std::vector<Metric> kDistance = {
    {.name = "frechet_distance", .direction = Direction::lower, .is_headline = true}};

// A run of one epoch.
RunData run_of(double value, double seconds, double pruned = 0.0, std::uint64_t seed = 0,
               const std::vector<Metric>& metrics = kAccuracy) {
  RunData run{.folder = "run", .config = {}, .name = {}, .method = {}};
  run.seed = seed;
  run.num_train = 1000;
  run.num_epochs = 1;
  run.metrics = metrics;
  run.epochs = {{.samples = static_cast<std::uint64_t>(1000.0 * (1.0 - pruned)),
                 .pruned = static_cast<std::uint64_t>(1000.0 * pruned),
                 .train_seconds = seconds,
                 .prune_seconds = 0.01 * seconds,
                 .values = {{metrics.front().name, value}}}};
  return run;
}

MethodRuns method(const std::string& label, const std::vector<RunData>& runs) {
  MethodRuns method{label, runs};
  for (std::size_t k = 0; k < runs.size(); ++k) method.runs[k].seed = k;
  return method;
}

Summary summary_of(const std::vector<MethodRuns>& methods) {
  return summarize({.baseline = "full", .methods = methods, .missing = {}});
}

TEST(RunSummary, AddsUpTheEpochs) {
  auto run = run_of(0.95, 2.0);
  run.epochs.push_back({.epoch = 1,
                        .samples = 604,  // 4 of them padding
                        .pruned = 400,
                        .train_seconds = 1.0,
                        .prune_seconds = 0.2,
                        .values = {{"accuracy", 0.9}}});
  const RunResult result = summarize_run(run);
  EXPECT_EQ(result.value, 0.9);  // of the last epoch, not the best
  EXPECT_DOUBLE_EQ(result.pruned_share, 0.2);
  EXPECT_DOUBLE_EQ(result.train_seconds, 3.0);
  EXPECT_DOUBLE_EQ(result.prune_seconds, 0.02 + 0.2);
  run.epochs.clear();
  EXPECT_THROW(summarize_run(run), std::invalid_argument);
}

TEST(Summary, ComparesSeedBySeed) {
  const Summary summary = summary_of(
      {method("full", {run_of(0.90, 10.0), run_of(0.92, 20.0), run_of(0.91, 10.0)}),
       method("seta", {run_of(0.91, 6.0, 0.4), run_of(0.92, 10.0, 0.4), run_of(0.93, 7.0, 0.4)})});
  const SummaryRow& full = summary.rows[0];
  EXPECT_DOUBLE_EQ(*full.mean, 0.91);
  EXPECT_NEAR(*full.deviation, 0.01, 1e-12);
  EXPECT_FALSE(full.difference);
  EXPECT_FALSE(full.time_saved);
  const SummaryRow& seta = summary.rows[1];
  EXPECT_DOUBLE_EQ(*seta.pruned_share, 0.4);
  EXPECT_NEAR(*seta.time_saved, (0.4 + 0.5 + 0.3) / 3, 1e-12);
  EXPECT_NEAR(*seta.prune_overhead, 0.01, 1e-12);
  // Differences 0.01, 0, 0.02: deviation 0.01, t(0.975, 2) = 4.302653.
  ASSERT_TRUE(seta.difference);
  EXPECT_NEAR(seta.difference->mean, 0.01, 1e-12);
  EXPECT_NEAR(*seta.difference->high - 0.01, 4.302653 * 0.01 / std::sqrt(3.0), 1e-7);
  EXPECT_FALSE(seta.difference->is_supported);
}

class SummaryOf : public ::testing::TestWithParam<Direction> {};

TEST_P(SummaryOf, CallsADifferenceRealOnlyIfTheIntervalExcludesZero) {
  const bool is_higher_better = GetParam() == Direction::higher;
  const auto& metrics = is_higher_better ? kAccuracy : kDistance;
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(0.0, 0.002);
  int num_supported = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<RunData> full;
    std::vector<RunData> other;
    for (int seed = 0; seed < 3; ++seed) {
      full.push_back(run_of(0.9 + noise(random), 10.0, 0.0, 0, metrics));
      const double value = 0.9 + 0.003 * (repeat % 3 - 1) + noise(random);
      other.push_back(run_of(value, 8.0, 0.0, 0, metrics));
    }
    const Summary summary = summary_of({method("full", full), method("other", other)});
    const Difference& difference = *summary.rows[1].difference;
    const bool is_above = *difference.low > 0.0;
    const bool is_below = *difference.high < 0.0;
    num_supported += is_above || is_below ? 1 : 0;
    EXPECT_EQ(difference.is_supported, is_above || is_below);
    const std::string text = format_summary(summary, true);
    const std::string row = text.substr(text.find("other"), text.find("\n\n") - text.find("other"));
    EXPECT_EQ(row.find("within noise") == std::string::npos, is_above || is_below) << text;
    EXPECT_EQ(row.find("better") != std::string::npos, is_higher_better ? is_above : is_below);
    EXPECT_EQ(row.find("worse") != std::string::npos, is_higher_better ? is_below : is_above);
    EXPECT_EQ(to_json(summary)["rows"][1]["difference"]["supported"], is_above || is_below);
  }
  EXPECT_GT(num_supported, 10);  // both cases were there
  EXPECT_LT(num_supported, 190);
}

INSTANTIATE_TEST_SUITE_P(Directions, SummaryOf,
                         ::testing::Values(Direction::higher, Direction::lower),
                         [](const auto& one) {
                           return one.param == Direction::higher ? "Accuracy" : "Distance";
                         });

TEST(Summary, OfOneSeedHasNoIntervalAndSaysSo) {
  const Summary summary = summary_of(
      {method("full", {run_of(0.90, 10.0)}), method("bls-seta", {run_of(0.95, 8.0, 0.2)})});
  EXPECT_FALSE(summary.rows[1].difference->low);
  EXPECT_NEAR(*summary.rows[1].time_saved, 0.2, 1e-12);
  const std::string text = format_summary(summary, true);
  EXPECT_THAT(text, HasSubstr("There is no interval"));
  EXPECT_THAT(text, Not(HasSubstr("better\n")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_TRUE(to_json(summary)["rows"][1]["deviation"].is_null());
}

TEST(Summary, OfTwoSeedsJudgesNothing) {
  const Summary summary = summary_of({method("full", {run_of(0.90, 10.0), run_of(0.90, 10.0)}),
                                      method("seta", {run_of(0.50, 8.0), run_of(0.50, 8.0)})});
  EXPECT_FALSE(summary.rows[1].difference->is_supported);
  EXPECT_THAT(
      format_summary(summary, true),
      AllOf(HasSubstr("not judged"), HasSubstr("at least 3 seeds"), Not(HasSubstr("worse"))));
}

TEST(Summary, GivesAnIntervalWhereSeedsAgreeByChance) {
  std::vector<MethodRuns> methods = {
      method("full", {run_of(0.900, 10.0), run_of(0.910, 10.0), run_of(0.920, 10.0)}),
      method("seta", {run_of(0.902, 8.0), run_of(0.912, 8.0), run_of(0.922, 8.0)})};
  const auto half_width = [](const Difference& one) { return *one.high - one.mean; };
  // t(0.975, 2) = 4.302653. A fiftieth of sqrt(2) * 0.01.
  EXPECT_NEAR(half_width(*summary_of(methods).rows[1].difference),
              4.302653 * 0.02 * 0.01 * std::sqrt(2.0 / 3.0), 1e-9);
  // A quarter of the deviation of all differences: 0 and 0.01 are sqrt(0.5) * 0.01 together.
  methods.push_back(method("ucb", {run_of(0.89, 8.0), run_of(0.91, 8.0), run_of(0.93, 8.0)}));
  const Difference difference = *summary_of(methods).rows[1].difference;
  EXPECT_NEAR(half_width(difference), 4.302653 * 0.25 * 0.01 * std::sqrt(0.5 / 3.0), 1e-9);
  EXPECT_FALSE(difference.is_supported);
}

TEST(Summary, JudgesNothingIfSeedsChangeNothing) {
  const std::vector<RunData> full(3, run_of(0.90, 10.0));
  const std::vector<RunData> seta(3, run_of(0.91, 8.0));
  const Summary summary = summary_of({method("full", full), method("seta", seta)});
  EXPECT_FALSE(summary.rows[1].difference->low);
  EXPECT_FALSE(summary.rows[1].difference->is_supported);
  EXPECT_THAT(format_summary(summary, true),
              AllOf(HasSubstr("not judged"), Not(HasSubstr("better\n"))));
}

// A run of 10 s on a processor that others kept busy, so that it took `seconds`.
RunData disturbed(double seconds, double processor_seconds, double pruned) {
  RunData run = run_of(0.9, seconds, pruned);
  run.epochs.front().processor_seconds = processor_seconds;
  return run;
}

TEST(Summary, TakesTheTimeSavedFromTheProcessorWhereEveryRunTells) {
  std::vector<MethodRuns> methods = {method("full", {disturbed(40.0, 10.0, 0.0)}),
                                     method("seta", {disturbed(6.5, 6.5, 0.4)})};
  Summary summary = summary_of(methods);
  EXPECT_NEAR(*summary.rows[1].time_saved, 0.35, 1e-12);
  EXPECT_EQ(to_json(summary)["time_saved_of"], "processor_seconds");
  EXPECT_THAT(format_summary(summary, true), HasSubstr("saved: of the processor's time"));
  methods[0].runs[0].epochs[0].processor_seconds.reset();
  summary = summary_of(methods);
  EXPECT_NEAR(*summary.rows[1].time_saved, 1.0 - 6.5 / 40.0, 1e-12);
  EXPECT_EQ(to_json(summary)["time_saved_of"], "train_seconds");
}

TEST(Summary, MarksWhatSavesMoreThanItPrunes) {
  const auto table = [](double seconds) {
    return summary_of(
        {method("full", {run_of(0.9, 10.0)}), method("seta", {run_of(0.9, seconds, 0.4)})});
  };
  EXPECT_THAT(format_summary(table(3.0), true),
              AllOf(HasSubstr("70.0 %*"), HasSubstr("*: more than was pruned")));
  EXPECT_EQ(to_json(table(3.0))["rows"][1]["more_saved_than_pruned"], true);
  EXPECT_THAT(format_summary(table(6.0), true), Not(HasSubstr("*")));
}

TEST(Summary, FitsTheTerminal) {
  const Summary summary =
      summary_of({method("full", {run_of(0.8, 10.0), run_of(0.9, 10.0), run_of(0.8, 10.0)}),
                  method("random-dynamic",
                         {run_of(0.7, 6.0, 0.4), run_of(0.9, 6.0, 0.4), run_of(0.8, 6.0, 0.4)})});
  const auto widest = [&](std::size_t width) {
    const std::string text = format_summary(summary, false, width);
    std::size_t most = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
    return most;
  };
  EXPECT_GT(widest(0), 80U);
  EXPECT_LE(widest(80), 80U);
  const std::string narrow = format_summary(summary, false, 80);
  for (const char* const kept : {"verdict", "within noise", "pruned", "saved"}) {
    EXPECT_THAT(narrow, HasSubstr(kept));
  }
  EXPECT_THAT(narrow, HasSubstr("Left out for want of columns: overhead, time"));
}

TEST(Summary, CountsFinishedRunsAndSharedSeedsOnly) {
  std::vector<RunData> seta = {run_of(0.92, 10.0), run_of(0.1, 10.0), run_of(0.93, 10.0)};
  seta[1].num_epochs = 2;
  const Summary summary =
      summary_of({method("full", {run_of(0.90, 10.0), run_of(0.91, 10.0)}), method("seta", seta)});
  EXPECT_EQ(summary.rows[1].runs.size(), 2U);
  EXPECT_EQ(summary.rows[1].difference->num_pairs, 1U);
  EXPECT_NEAR(summary.rows[1].difference->mean, 0.02, 1e-12);
}

TEST(Summary, HasTheFieldsThatOtherToolsRead) {
  const Json json = to_json(summary_of({method("full", {run_of(0.90, 10.0), run_of(0.91, 10.0)}),
                                        method("seta", {run_of(0.91, 6.0), run_of(0.92, 6.0)})}));
  EXPECT_EQ(json["confidence"], 0.95);
  EXPECT_EQ(json["metric"]["name"], "accuracy");
  const Json& row = json["rows"][1];
  EXPECT_EQ(row["method"], "seta");
  EXPECT_EQ(row["num_seeds"], 2);
  for (const char* key : {"mean", "deviation", "pruned_share", "time_saved", "train_seconds_mean",
                          "prune_overhead"}) {
    EXPECT_TRUE(row[key].is_number()) << key;
  }
  for (const char* key : {"mean", "low", "high", "supported"}) {
    EXPECT_TRUE(row["difference"].contains(key)) << key;
  }
  EXPECT_EQ(row["runs"][1]["value"], 0.92);
  EXPECT_TRUE(json["rows"][0]["difference"].is_null());
  EXPECT_TRUE(json["rows"][0]["time_saved"].is_null());
}

TEST(Summary, WritesNumbersInTheUnitOfTheMetric) {
  const auto table = [](const std::vector<Metric>& metrics, double value) {
    return format_summary(summary_of({method("full", {run_of(value, 1.0, 0.0, 0, metrics)})}),
                          true);
  };
  EXPECT_THAT(table(kAccuracy, 0.9123), AllOf(HasSubstr("accuracy %"), HasSubstr("91.23")));
  EXPECT_THAT(table(kDistance, 12.3456),
              AllOf(HasSubstr("frechet distance "), HasSubstr("12.35"), HasSubstr("lower is")));
  EXPECT_THAT(table({{.name = "CIDEr", .unit = "pt", .is_headline = true}}, 112.44),
              AllOf(HasSubstr("CIDEr pt"), HasSubstr("112.4")));
}

TEST(Summary, ColumnsAreAlignedWithAndWithoutUtf8) {
  const Summary summary =
      summary_of({method("full", {run_of(0.90, 10.0), run_of(0.91, 10.0)}),
                  method("random-dynamic", {run_of(0.91, 6.0, 0.25), run_of(0.92, 6.0, 0.25)})});
  for (const bool utf8 : {true, false}) {
    const std::string text = format_summary(summary, utf8);
    EXPECT_EQ(text.find("±") != std::string::npos, utf8);
    const std::size_t second = text.find("random-dynamic");
    const std::size_t first = text.rfind("full ", second);
    const std::string row = text.substr(first, second - first);
    EXPECT_EQ(row.find("0.0 %"), text.substr(second).find("25.0 %") + 1) << text;
  }
}

TEST(Summary, RefusesToCompareDifferentHeadlines) {
  EXPECT_THAT(
      [] {
        summary_of({method("full", {run_of(0.9, 1.0)}),
                    method("seta", {run_of(0.9, 1.0, 0.0, 0, kDistance)})});
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("one headline metric")));
  EXPECT_THROW(summary_of({method("full", {})}), std::runtime_error);
}

TEST(FormatEpoch, GivesEveryMetricThatWasMeasured) {
  const EpochMetrics epoch{.epoch = 2,
                           .samples = 45000,
                           .pruned = 15000,
                           .train_seconds = 4.0,
                           .values = {{"test_accuracy", 0.8799}, {"train_loss", 0.3}}};
  EXPECT_EQ(format_epoch(epoch, classification_metrics(), 16),
            "epoch 3/16  test accuracy 87.99 %  train loss 0.3000  pruned 25.0 %  11,250 "
            "samples/s  4.0 s");
}

TEST(FormatDuration, WritesTimeAsPeopleDo) {
  EXPECT_EQ(format_duration(0.2), "0 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(247.0), "4:07 min");
  EXPECT_EQ(format_duration(3723.0), "1:02:03 h");
}

}  // namespace
}  // namespace tamis::runs
