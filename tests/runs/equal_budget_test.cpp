// Equal budgets, time to a stated value, and runs that were disturbed.
#include "runs/equal_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runs/reach.h"

namespace tamis::runs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A run of two epochs of 10 seconds each, on 1,000 samples.
RunData run_of(const std::string& policy, double value, double pruned, std::uint64_t seed) {
  RunData run{.folder = "run",
              .config = {{"method", {{"policy", {{"name", policy}}}}}},
              .name = {},
              .method = policy};
  run.seed = seed;
  run.num_train = 1000;
  run.num_epochs = run.num_full_epochs = 2;
  run.metrics = {{.name = "accuracy", .unit = "fraction", .is_headline = true}};
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    run.epochs.push_back({.epoch = epoch,
                          .samples = static_cast<std::uint64_t>(1000.0 * (1.0 - pruned)),
                          .pruned = static_cast<std::uint64_t>(1000.0 * pruned),
                          .train_seconds = 10.0 * (1.0 - pruned),
                          .values = {{"accuracy", epoch == 0 ? value - 0.1 : value}}});
  }
  return run;
}

MethodRuns row(const std::string& policy, double value, double pruned, std::size_t seeds = 4) {
  MethodRuns method{policy, {}};
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    // Seeds differ by more than methods do; their differences hardly do.
    method.runs.push_back(run_of(
        policy, value + 0.01 * static_cast<double>(seed) + 0.0001 * static_cast<double>(seed % 2),
        pruned, seed));
  }
  return method;
}

Summary summary_of(std::vector<MethodRuns> methods, std::optional<double> reach = std::nullopt) {
  return summarize(
      {.baseline = "none", .methods = std::move(methods), .missing = {}, .reach = reach});
}

TEST(EqualBudget, AMethodMustBeatEveryRowThatOnlyTrainsOnFewerSamples) {
  MethodRuns fewer = row("none", 0.87, 0.0);
  fewer.label = "fewer-epochs";
  for (RunData& run : fewer.runs) run.num_full_epochs = 4;  // half of the epochs
  const Summary summary =
      summary_of({row("none", 0.90, 0.0), fewer, row("random-dynamic", 0.86, 0.5),
                  row("seta", 0.88, 0.5), row("infobatch", 0.865, 0.5)});
  EXPECT_DOUBLE_EQ(*summary.rows[1].pruned_share, 0.5);
  EXPECT_TRUE(summary.rows[1].is_budget_baseline);
  EXPECT_TRUE(summary.rows[2].is_budget_baseline);
  EXPECT_THAT(summary.rows[0].equal_budget, IsEmpty());  // prunes nothing
  EXPECT_THAT(summary.rows[2].equal_budget, IsEmpty());
  EXPECT_EQ(budget_text(summary.rows[3], summary.metric), "yes");
  EXPECT_EQ(budget_text(summary.rows[4], summary.metric), "no");
  EXPECT_THAT(unbeaten(summary.rows[4], summary.metric), ElementsAre("fewer-epochs"));
  const std::string text = format_summary(summary, true);
  EXPECT_THAT(text, HasSubstr("beats equal budget"));
  const Json json = to_json(summary);
  EXPECT_EQ(json["rows"][4]["equal_budget"].size(), 2U);
  EXPECT_EQ(json["rows"][4]["equal_budget"][0]["baseline"], "fewer-epochs");
  EXPECT_EQ(json["rows"][1]["is_budget_baseline"], true);
}

TEST(EqualBudget, RowsThatTrainOnMoreSamplesAreNoMeasure) {
  const Summary summary = summary_of(
      {row("none", 0.90, 0.0), row("random-dynamic", 0.95, 0.3), row("infobatch", 0.88, 0.5)});
  EXPECT_EQ(budget_text(summary.rows[2], summary.metric), "-");
}

TEST(EqualBudget, FewSeedsAreNotJudged) {
  const Summary summary =
      summary_of({row("none", 0.90, 0.0, 2), row("random-dynamic", 0.80, 0.5, 2),
                  row("infobatch", 0.88, 0.5, 2)});
  EXPECT_EQ(budget_text(summary.rows[2], summary.metric), "not judged");
}

TEST(Reach, IsTheTimeOfTheFirstEpochThatIsAsGood) {
  const RunData run = run_of("seta", 0.9, 0.4, 0);
  EXPECT_DOUBLE_EQ(seconds_to_reach(run, 0.75, false).value(), 6.0);
  EXPECT_DOUBLE_EQ(seconds_to_reach(run, 0.9, false).value(), 12.0);
  EXPECT_FALSE(seconds_to_reach(run, 0.91, false));
}

TEST(Reach, IsComparedWithTheBaselineAndSaysHowManySeedsGetThere) {
  const Summary summary =
      summary_of({row("none", 0.90, 0.0), row("seta", 0.885, 0.5), row("ucb", 0.5, 0.5)}, 0.90);
  const Reach& seta = *summary.rows[1].reach;
  EXPECT_EQ(seta.num_reached, 2U);
  EXPECT_DOUBLE_EQ(*seta.share_of_baseline, 0.5);
  EXPECT_EQ(summary.rows[2].reach->num_reached, 0U);
  const std::string text = format_summary(summary, true);
  EXPECT_THAT(text, HasSubstr("to 90.00 %"));
  EXPECT_THAT(text, HasSubstr("50.0 % (2 of 4 seeds)"));
  EXPECT_THAT(text, HasSubstr("never"));
  EXPECT_EQ(to_json(summary)["rows"][1]["reach"]["num_reached"], 2);
}

TEST(Reach, IsOfTheProcessorsTimeWhereAllRunsTellIt) {
  std::vector<MethodRuns> methods = {row("none", 0.90, 0.0), row("seta", 0.90, 0.5)};
  for (MethodRuns& method : methods) {
    for (RunData& run : method.runs) {
      for (EpochMetrics& epoch : run.epochs) epoch.processor_seconds = 4.0;
    }
  }
  const Summary summary = summary_of(methods, 0.90);
  EXPECT_DOUBLE_EQ(*summary.rows[0].reach->seconds, 8.0);
  EXPECT_DOUBLE_EQ(*summary.rows[1].reach->share_of_baseline, 1.0);
  EXPECT_THAT(format_summary(summary, true), HasSubstr("to 90.00 %: processor's time until"));
  methods[1].runs[3].epochs[0].processor_seconds = std::nullopt;
  EXPECT_DOUBLE_EQ(*summary_of(methods, 0.90).rows[1].reach->share_of_baseline, 0.5);
}

TEST(Disturbance, IsMarkedAndCounted) {
  MethodRuns seta = row("seta", 0.88, 0.5);
  for (RunData& run : seta.runs) {
    for (EpochMetrics& epoch : run.epochs) epoch.processor_share = 0.98;
  }
  EXPECT_THAT(format_summary(summary_of({row("none", 0.9, 0.0), seta}), true),
              Not(HasSubstr("!:")));
  seta.runs[1].epochs[1].processor_share = 0.7;  // 0.84 over both epochs
  const Summary summary = summary_of({row("none", 0.9, 0.0), seta});
  EXPECT_EQ(summary.rows[1].num_disturbed, 1U);
  EXPECT_NEAR(*summary.rows[1].runs[1].result.processor_share, 0.84, 1e-12);
  EXPECT_FALSE(summary.rows[0].runs[0].result.processor_share);
  EXPECT_THAT(format_summary(summary, true), HasSubstr("10.0 s!"));
}

TEST(Scoring, IsPartOfTheTimeAndShownApart) {
  MethodRuns el2n = row("seta", 0.88, 0.5);
  for (RunData& run : el2n.runs) {
    run.epochs[0].train_seconds += 4.0;
    run.epochs[0].score_seconds = 4.0;
  }
  const Summary summary = summary_of({row("none", 0.9, 0.0), el2n});
  EXPECT_DOUBLE_EQ(summary.rows[1].score_seconds_mean, 4.0);
  EXPECT_DOUBLE_EQ(*summary.rows[1].train_seconds_mean, 14.0);
  EXPECT_NEAR(*summary.rows[1].time_saved, 0.3, 1e-12);
  EXPECT_THAT(format_summary(summary, true), HasSubstr("scoring"));
}

}  // namespace
}  // namespace tamis::runs
