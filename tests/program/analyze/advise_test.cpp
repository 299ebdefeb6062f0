// `tamis advise` on recordings of simulated training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kSamples = 1000;
constexpr std::size_t kBatch = 20;
constexpr std::uint64_t kEpochs = 5;

class Advise : public ::testing::Test {
 protected:
  // Losses of a run whose labels are wrong for this share of the samples.
  void record(double wrong_share, bool is_watched) {
    Pruner pruner({.num_samples = kSamples,
                   .num_epochs = kEpochs,
                   .policy = {.name = "none"},
                   .score = Spec{"batch-loss"},
                   .seed = 4});
    pruner.record(folder_ / "run/record", {.num_recorded = kSamples});
    std::mt19937_64 random(3);
    std::exponential_distribution<double> clean(4.0);
    std::normal_distribution<double> wrong(4.0, 0.4);
    std::vector<float> losses(kSamples);
    for (std::size_t i = 0; i < kSamples; ++i) {
      const bool is_wrong = static_cast<double>(i) < wrong_share * kSamples;
      losses[i] = static_cast<float>(is_wrong ? wrong(random) : 0.01 + clean(random));
    }
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const EpochPlan& plan = pruner.start_epoch(epoch);
      std::vector<SampleIndex> batch(kBatch);
      std::vector<float> own(kBatch);
      for (std::size_t begin = 0; begin < plan.size(); begin += kBatch) {
        plan.copy_to(begin, batch);
        for (std::size_t k = 0; k < kBatch; ++k)
          own[k] = losses[static_cast<std::size_t>(batch[k])];
        if (is_watched) {
          pruner.observe(begin, own, own);
        } else {
          pruner.observe(begin, own);
        }
        pruner.set_position(begin + kBatch);
      }
    }
    pruner.save(folder_ / "run/pruner.safetensors");
  }
  json advise() const { return run_json({"advise", folder_.at("run"), "--json"}); }
  static json method_of(const json& advice, const std::string& name) {
    for (const json& one : advice["methods"]) {
      if (one["method"] == name) return one;
    }
    return {};
  }

  TextFolder folder_;
};

TEST_F(Advise, SaysWhatEachMethodWouldPruneAndHowGoodItsScoreIs) {
  record(0.0, true);
  const json advice = advise();
  const json own = method_of(advice, "infobatch");
  EXPECT_NEAR(own["spearman"].get<double>(), 1.0, 1e-9);
  // 1 - 1/e of exponential losses are below their mean, and half of these go, in 7 of 8 epochs.
  EXPECT_NEAR(own["pruned_share"].get<double>(), 0.875 * 0.5 * (1.0 - std::exp(-1.0)), 0.03);
  EXPECT_GT(method_of(advice, "ogs-infobatch")["spearman"], 0.9);
  EXPECT_LT(method_of(advice, "bls-infobatch")["spearman"], 0.9);
  EXPECT_EQ(advice["suspects"]["number"], 0);
  EXPECT_EQ(advice["method"], "ogs-infobatch");
  EXPECT_THAT(advice["commands"].dump(),
              AllOf(HasSubstr("--method ogs-infobatch"), HasSubstr("--equal-budget")));
}

TEST_F(Advise, EstimatesTheNumberOfWrongLabelsAndAdvisesToTrim) {
  record(0.2, true);
  const json advice = advise();
  EXPECT_NEAR(advice["suspects"]["number"].get<double>(), 200.0, 20.0);
  EXPECT_THAT(advice["method"].get<std::string>(), HasSubstr("ogs-trim:prune-ratio=0."));
  EXPECT_THAT(run({"advise", folder_.at("run")}).out,
              AllOf(HasSubstr("have losses that stand out"), HasSubstr("tamis suspects")));
}

TEST_F(Advise, LeavesOutMethodsWhoseScoresWereNotRecorded) {
  record(0.0, false);
  const json advice = advise();
  EXPECT_TRUE(method_of(advice, "ogs-infobatch").is_null());
  EXPECT_FALSE(method_of(advice, "blr-infobatch").is_null());
}

TEST_F(Advise, NeedsARecording) {
  const Outcome outcome = run({"advise", folder_.at("nothing")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("holds no recording; tamis train --record makes one"));
}

}  // namespace
}  // namespace tamis::test
