#include "training/trainer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/scratch_folder.h"
#include "support/tiny_run.h"
#include "tamis/registry.h"

namespace tamis::training::trainer_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Keeps what an observer is shown.
class Recorder final : public TrainingObserver {
 public:
  void on_step(const StepInfo& step) override {
    batches.emplace_back(step.indices.begin(), step.indices.end());
    epochs.push_back(step.epoch);
    progress.push_back(step.progress);
    learning_rates.push_back(step.running.learning_rate);
    num_steps.push_back(step.num_steps);
    has_losses = !step.losses.empty();
  }
  void on_epoch(const EpochMetrics&) override { ++num_epochs; }

  std::vector<std::vector<SampleIndex>> batches;
  std::vector<std::uint64_t> epochs;
  std::vector<double> progress;
  std::vector<double> learning_rates;
  std::vector<std::uint64_t> num_steps;
  bool has_losses = false;
  int num_epochs = 0;
};

TEST(Trainer, LearnsAndPrunesAndSaysSo) {
  const test::ScratchFolder scratch;
  Trainer trainer = test::start(test::tiny_config("bls-infobatch"), scratch / "run");
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
  const auto& metrics = trainer.metrics();
  ASSERT_EQ(metrics.size(), 6U);
  EXPECT_LT(metrics.back().values.at("train_loss"), 0.5 * metrics.front().values.at("train_loss"));
  EXPECT_GT(metrics.back().values.at("test_accuracy"), 0.9);
  EXPECT_EQ(metrics[0].pruned, 0U);  // nothing is scored yet
  EXPECT_GT(metrics[2].pruned, 10U);
  EXPECT_EQ(metrics[5].pruned, 0U);  // annealing
  for (const EpochMetrics& epoch : metrics) {
    EXPECT_EQ(epoch.samples + epoch.pruned, 120U);
    EXPECT_EQ(epoch.steps, (epoch.samples + 15) / 16 - (epoch.samples % 16 == 1 ? 1 : 0));
    ASSERT_TRUE(epoch.scores);
    EXPECT_EQ(std::accumulate(epoch.scores->counts.begin(), epoch.scores->counts.end(), 0U), 120U);
    EXPECT_GT(epoch.train_seconds, epoch.prune_seconds);
    EXPECT_GT(epoch.processor_seconds.value_or(0.0), 0.0);
    EXPECT_GT(epoch.prune_seconds, 0.0);
    EXPECT_GT(epoch.test_seconds, 0.0);
  }
  EXPECT_EQ(runs::read_run(scratch / "run").epochs, metrics);
  EXPECT_EQ(read_run_config(scratch / "run"), trainer.config());
  EXPECT_TRUE(std::filesystem::exists(scratch / "run" / "checkpoint.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "run" / "pruner.safetensors"));
}

TEST(Trainer, EveryMethodRuns) {
  const test::ScratchFolder scratch;
  for (const MethodInfo& method : registered_methods()) {
    RunConfig config = test::tiny_config(std::string(method.name));
    config.training.epochs = 3;
    Trainer trainer = test::start(config, scratch / std::string(method.name));
    EXPECT_EQ(test::run_quietly(trainer), Outcome::finished) << method.name;
    EXPECT_EQ(trainer.pruner().num_skipped_observations(), 0U) << method.name;
  }
}

TEST(Trainer, HomogeneousBatchesHaveOneWeightEach) {
  const test::ScratchFolder scratch;
  RunConfig config = test::tiny_config("bls-infobatch:homogeneous=1,delta=1");
  Trainer trainer = test::start(config, scratch / "run");
  std::size_t num_rescaled = 0;
  // Each batch is looked at while its plan is the running one.
  struct Check final : TrainingObserver {
    Trainer* trainer;
    std::size_t* num_rescaled;
    void on_step(const StepInfo& step) override {
      const EpochPlan& plan = *trainer->pruner().plan();
      for (const SampleIndex i : step.indices) {
        EXPECT_EQ(plan.weight_of(i), plan.weight_of(step.indices[0]));
        *num_rescaled += plan.weight_of(i) != 1.0F ? 1 : 0;
      }
    }
    void on_epoch(const EpochMetrics&) override {}
  } check;
  check.trainer = &trainer;
  check.num_rescaled = &num_rescaled;
  EXPECT_EQ(trainer.run(check, {}), Outcome::finished);
  EXPECT_GT(num_rescaled, 16U);
  EXPECT_EQ(num_rescaled % 16, 0U);
}

TEST(Trainer, KeepsAShareOfEveryClassAndMeetsItsTarget) {
  const test::ScratchFolder scratch;
  RunConfig config = test::tiny_config("blr-infobatch:min-per-class=0.6,target-prune=0.15");
  config.training.epochs = 10;
  Trainer trainer = test::start(config, scratch / "run");
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
  EXPECT_NEAR(trainer.pruner().pruned_share(), 0.15, 0.005);
  for (const EpochMetrics& epoch : trainer.metrics()) EXPECT_GE(epoch.samples, 72U);
}

TEST(Trainer, InitialWeightsDependOnTheSeedAlone) {
  const test::ScratchFolder scratch;
  const auto initial = [&](const char* method, std::uint64_t seed, const char* name) {
    RunConfig config = test::tiny_config(method);
    config.training.seed = seed;
    Trainer trainer = test::start(config, scratch / name);
    return test::weights_of(trainer);
  };
  const auto full = initial("full", 1, "a");
  torch::rand({7});  // whatever else draws random numbers
  EXPECT_TRUE(test::same_bits(full, initial("bls-seta", 1, "b")));
  EXPECT_FALSE(test::same_bits(full, initial("full", 2, "c")));
}

TEST(Trainer, TheSameSettingsGiveTheSameWeights) {
  const test::ScratchFolder scratch;
  const auto train = [&](const char* name, const char* method, std::uint64_t seed) {
    RunConfig config = test::tiny_config(method);
    config.training.seed = seed;
    config.training.augment = AugmentKind::crop_flip;
    Trainer trainer = test::start(config, scratch / name);
    test::run_quietly(trainer);
    return test::weights_of(trainer);
  };
  const auto first = train("a", "infobatch", 1);
  EXPECT_TRUE(test::same_bits(first, train("b", "infobatch", 1)));
  EXPECT_FALSE(test::same_bits(first, train("c", "infobatch", 2)));
  EXPECT_FALSE(test::same_bits(first, train("d", "bls-infobatch", 1)));
}

TEST(Trainer, UsesEverySampleOfThePlanOnceInBatchesOfTheSizeAsked) {
  const test::ScratchFolder scratch;
  Trainer trainer = test::start(test::tiny_config("full"), scratch / "run");
  Recorder recorder;
  trainer.run(recorder, {});
  EXPECT_EQ(recorder.num_epochs, 6);
  ASSERT_EQ(recorder.batches.size(), 6U * 8U);  // 120 samples: 7 batches of 16 and one of 8
  std::set<SampleIndex> seen;
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(recorder.epochs[k], 0U);
    EXPECT_EQ(recorder.batches[k].size(), k < 7 ? 16U : 8U);
    seen.insert(recorder.batches[k].begin(), recorder.batches[k].end());
  }
  EXPECT_EQ(seen.size(), 120U);
  EXPECT_NE(recorder.batches[0], recorder.batches[8]);  // another order
}

TEST(Trainer, ALastBatchOfOneSampleJoinsTheOneBefore) {
  const test::ScratchFolder scratch;
  RunConfig config = test::tiny_config("full");
  config.training.batch_size = 17;  // 120 = 7 * 17 + 1
  config.training.epochs = 2;
  Trainer trainer = test::start(config, scratch / "run");
  Recorder recorder;
  trainer.run(recorder, {});
  ASSERT_EQ(recorder.batches.size(), 14U);
  for (std::size_t k = 0; k < 14; ++k) {
    EXPECT_EQ(recorder.batches[k].size(), k % 7 == 6 ? 18U : 17U) << k;
    EXPECT_EQ(recorder.num_steps[k], 7U);
  }
  EXPECT_EQ(trainer.metrics()[0].samples, 120U);
  EXPECT_EQ(trainer.metrics()[0].steps, 7U);
}

TEST(Trainer, BeginsAllMethodsWithTheSameOrderOfSamples) {
  const test::ScratchFolder scratch;
  std::vector<std::vector<SampleIndex>> first;
  for (const std::string method : {"full", "infobatch", "bls-infobatch"}) {
    Trainer trainer = test::start(test::tiny_config(method), scratch / method);
    Recorder recorder;
    trainer.run(recorder, test::stop_after(5));
    if (first.empty()) first = recorder.batches;
    EXPECT_EQ(recorder.batches, first) << method;
  }
}

TEST(Trainer, OnlyMethodsOnSampleLossesComputeThem) {
  const test::ScratchFolder scratch;
  for (const std::string method : {"full", "infobatch", "bls-infobatch", "ucb"}) {
    Trainer trainer = test::start(test::tiny_config(method), scratch / method);
    Recorder recorder;
    trainer.run(recorder, test::stop_after(1));
    EXPECT_EQ(recorder.has_losses, method == "infobatch" || method == "ucb") << method;
  }
}

TEST(Trainer, TheLearningRateFollowsTheShareOfTheRunThatIsDone) {
  const test::ScratchFolder scratch;
  RunConfig config = test::tiny_config("random:prune-ratio=0.5");
  config.training.schedule = ScheduleKind::cosine;
  config.training.warmup = 0.0;
  Trainer trainer = test::start(config, scratch / "run");
  Recorder recorder;
  trainer.run(recorder, {});
  EXPECT_EQ(recorder.progress.back(), 1.0);
  EXPECT_EQ(recorder.learning_rates.front(), config.training.learning_rate);
  for (std::size_t k = 1; k < recorder.progress.size(); ++k) {
    // Progress is that after a step, the learning rate that at its start.
    const double expected =
        0.5 * config.training.learning_rate * (1.0 + std::cos(M_PI * recorder.progress[k - 1]));
    EXPECT_NEAR(recorder.learning_rates[k], expected, 1e-12);
  }
}

TEST(Trainer, MethodsThatDoNotLookAtScoresSpendNothingOnThem) {
  const test::ScratchFolder scratch;
  for (const std::string method : {"full", "random", "random-dynamic"}) {
    Trainer trainer = test::start(test::tiny_config(method), scratch / method);
    test::run_quietly(trainer);
    EXPECT_EQ(trainer.pruner().num_observations(), 0U) << method;
    EXPECT_FALSE(trainer.metrics().back().scores) << method;
  }
}

TEST(Trainer, StopsWithAMessageWhenTheLossIsNoNumberAnyMore) {
  const test::ScratchFolder scratch;
  RunConfig config = test::tiny_config("full");
  config.training.learning_rate = 1e6;
  config.training.schedule = ScheduleKind::constant;
  Trainer trainer = test::start(config, scratch / "run");
  EXPECT_THAT([&] { test::run_quietly(trainer); },
              ThrowsMessage<std::runtime_error>(HasSubstr("lower learning rate")));
}

TEST(Trainer, RefusesSettingsOutOfRange) {
  const test::ScratchFolder scratch;
  RunConfig config = test::tiny_config("full");
  config.training.epochs = 0;
  EXPECT_THROW(test::start(config, scratch / "a"), std::invalid_argument);
  config = test::tiny_config("full");
  config.model.name = "perceptron";
  EXPECT_THAT([&] { test::start(config, scratch / "b"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("perceptron")));
}

TEST(RunData, LimitsTakeSamplesEvenly) {
  const DataSplits data = *load_run_data({.name = "fashion-mnist", .limit = 600, .test_limit = 50});
  const DataSplits all = *load_run_data({.name = "fashion-mnist"});
  EXPECT_EQ(data.train.size(), 600U);
  EXPECT_EQ(data.test.size(), 50U);
  EXPECT_EQ(all.train.size(), 60000U);
  EXPECT_TRUE(torch::equal(data.train.images[599], all.train.images[59900]));
  EXPECT_TRUE(torch::equal(data.train.labels[599], all.train.labels[59900]));
}

}  // namespace tamis::training::trainer_test
