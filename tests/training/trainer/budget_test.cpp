// Fewer epochs: the baseline that every pruned run has to beat.
#include "training/trainer/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "runs/run.h"
#include "support/scratch_folder.h"
#include "support/tiny_run.h"

namespace tamis::training::budget_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RunConfig config_with(const std::string& method, std::uint64_t epochs) {
  RunConfig config = test::tiny_config();
  config.training.epochs = epochs;
  choose_method(config, parse_trained_method(method, {}));
  return config;
}

TEST(FewerEpochs, LeavesOutTheShareOfTheRunThatPruningWould) {
  const RunConfig config = config_with("fewer-epochs:target-prune=0.5", 6);
  EXPECT_EQ(config.training.epochs, 3U);
  EXPECT_EQ(config.full_epochs, 6U);
  EXPECT_EQ(config_with("fewer-epochs:target-prune=0.3", 40).training.epochs, 28U);
  EXPECT_EQ(config_with("fewer-epochs:target-prune=0.99", 6).training.epochs, 1U);
  EXPECT_EQ(config_with("bls-infobatch", 6).full_epochs, 0U);
}

TEST(FewerEpochs, TakesTheShareOfTheWholeComparison) {
  const MethodOptions options{.common = {{"target_prune", 0.25}}};
  EXPECT_EQ(parse_trained_method("fewer-epochs", options).target_prune, 0.25);
  EXPECT_EQ(parse_trained_method("fewer-epochs:target-prune=0.5", options).target_prune, 0.5);
}

TEST(FewerEpochs, SaysWhatIsMissingOrWrong) {
  const auto parse = [](const char* text) { return [=] { parse_trained_method(text, {}); }; };
  EXPECT_THAT(parse("fewer-epochs"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("--target-prune 0.3")));
  EXPECT_THAT(parse("fewer-epochs:target-prune=1"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("in [0, 1), got 1")));
  EXPECT_THAT(parse("fewer-epochs:alpha=0.5"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("alpha")));
}

TEST(FewerEpochs, TrainsOnAllSamplesAndCountsTheEpochsThatItLeavesOut) {
  const test::ScratchFolder scratch;
  auto trainer = test::start(config_with("fewer-epochs:target-prune=0.5", 6), scratch / "run");
  ASSERT_EQ(test::run_quietly(trainer), Outcome::finished);
  const runs::RunData run = runs::read_run(scratch / "run");
  ASSERT_EQ(run.epochs.size(), 3U);
  for (const EpochMetrics& epoch : run.epochs) EXPECT_EQ(epoch.samples, 120U);
  EXPECT_DOUBLE_EQ(runs::summarize_run(run).pruned_share, 0.5);
  // The same learning rates as a full run, in half as many steps: the last is next to nothing.
  EXPECT_LT(*run.epochs.back().learning_rate, 0.02 * trainer.config().training.learning_rate);
  EXPECT_EQ(read_run_config(scratch / "run"), trainer.config());
}

TEST(EqualBudget, ItsRowsTrainOnTheSameNumberOfSamples) {
  const test::ScratchFolder scratch;
  const MethodOptions options{.common = {{"target_prune", 0.5}}};
  for (const std::string& name : budget_methods()) {
    RunConfig config = test::tiny_config();
    config.training.epochs = 8;
    choose_method(config, parse_trained_method(name, options));
    auto trainer = test::start(config, scratch / name);
    test::run_quietly(trainer);
    const double pruned = runs::summarize_run(runs::read_run(scratch / name)).pruned_share;
    EXPECT_NEAR(pruned, name == "full" ? 0.0 : 0.5, 0.01) << name;
  }
}

}  // namespace tamis::training::budget_test
