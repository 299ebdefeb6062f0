#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "support/simulated_run.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

PrunerOptions options_of(const std::string& policy, double target, std::uint64_t seed = 1) {
  return {.num_samples = 1500,
          .num_epochs = 20,
          .policy = {policy},
          .seed = seed,
          .target_prune = target};
}

std::string message_of(const PrunerOptions& options) {
  try {
    Pruner pruner(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(TargetPrune, IsMetWithinHalfAPointByEveryPolicyThatCan) {
  for (const char* policy :
       {"infobatch", "random-dynamic", "epsilon-greedy", "ucb", "trim", "seta"}) {
    for (const double target : {0.2, 0.25, 0.3}) {
      Pruner pruner(options_of(policy, target));
      test::simulate_epochs(pruner, 0, 20, 32);
      EXPECT_NEAR(pruner.pruned_share(), target, 0.005) << policy;
    }
  }
}

TEST(TargetPrune, IsMetWithinHalfAPointWheneverThePlansCallItReachable) {
  std::mt19937_64 random(5);
  int reachable = 0;
  int unreachable = 0;
  for (int trial = 0; trial < 150; ++trial) {
    const char* const policies[] = {"infobatch", "random-dynamic", "seta", "trim"};
    PrunerOptions options = options_of(policies[random() % 4], 0.0, random());
    options.num_samples = 300 + random() % 2000;
    options.num_epochs = 8 + random() % 20;
    options.delta = 0.5 + 0.1 * static_cast<double>(random() % 6);
    options.homogeneous_batch_size = random() % 2 * 16;
    options.target_prune = 0.05 * static_cast<double>(1 + random() % 12);
    if (random() % 2 == 0) {
      options.min_per_class = 0.2;
      for (std::size_t i = 0; i < options.num_samples; ++i) {
        options.labels.push_back(static_cast<std::int32_t>(random() % 10));
      }
    }
    if (message_of(options) != "no error") continue;
    Pruner pruner(options);
    bool warned = false;
    for (std::uint64_t epoch = 0; epoch < options.num_epochs; ++epoch) {
      const SelectionReport& report = pruner.start_epoch(epoch).selection().report;
      warned = warned || *options.target_prune > report.highest_reachable.value_or(1.0) + 0.005 ||
               *options.target_prune < report.lowest_reachable.value_or(0.0) - 0.005;
      test::simulate_epoch(pruner, 32);
    }
    const double distance = std::abs(pruner.pruned_share() - *options.target_prune);
    (warned ? unreachable : reachable) += 1;
    if (!warned) {
      EXPECT_LT(distance, 0.005) << options.policy.name << ' ' << trial;
    }
  }
  EXPECT_GT(reachable, 40);
  EXPECT_GT(unreachable, 5);
}

TEST(TargetPrune, ShowsTheRatioThatItChose) {
  PrunerOptions options = options_of("random-dynamic", 0.25);
  options.delta = 0.5;
  Pruner pruner(options);
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const EpochPlan& plan = pruner.start_epoch(epoch);
    EXPECT_EQ(plan.selection().report.prune_ratio.has_value(), plan.pruning());
    if (plan.pruning()) {
      EXPECT_NEAR(*plan.selection().report.prune_ratio, 0.5, 0.001);
    }
  }
  EXPECT_NEAR(pruner.pruned_share(), 0.25, 0.001);
}

TEST(TargetPrune, MakesUpForEpochsThatCannotPrune) {
  Pruner pruner(options_of("trim", 0.3));  // the first 5 of 20 epochs are its warm-up
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const EpochPlan& plan = pruner.start_epoch(epoch);
    EXPECT_NEAR(static_cast<double>(plan.num_pruned()), epoch < 5 ? 0.0 : 600.0, 2.0) << epoch;
    test::simulate_epoch(pruner, 32);
  }
}

TEST(TargetPrune, KeepsTheWeightsOfInfoBatchRight) {
  Pruner pruner(options_of("infobatch", 0.3));
  test::simulate_epochs(pruner, 0, 3, 32);
  const EpochPlan& plan = pruner.start_epoch(3);
  const double keep = 1.0 - *plan.selection().report.prune_ratio;
  EXPECT_FLOAT_EQ(plan.selection().rescale, static_cast<float>(1.0 / keep));
}

TEST(TargetPrune, RefusesWhatIsImpossibleFromTheStart) {
  EXPECT_EQ(message_of(options_of("infobatch", 1.0)),
            "Pruner: target_prune must be in [0, 1), got 1");
  EXPECT_EQ(message_of(options_of("infobatch", 0.8)),
            "Pruner: target_prune must be at most 0.765 (a prune_ratio of 0.9 in 17 of 20 "
            "epochs), got 0.8");
  EXPECT_EQ(message_of(options_of("none", 0.2)),
            "Pruner: target_prune must be unset for policy none, whose ratio cannot change, got "
            "0.2");
  EXPECT_NE(message_of(options_of("random", 0.2)), "no error");
}

TEST(TargetPrune, ResumesExactly) {
  const PrunerOptions options = options_of("infobatch", 0.33);
  Pruner whole(options);
  test::simulate_epochs(whole, 0, 6, 32);
  whole.start_epoch(6);
  test::simulate_step(whole, 32);
  Pruner resumed(options);
  resumed.deserialize(whole.serialize());
  for (Pruner* pruner : {&whole, &resumed}) {
    test::simulate_epoch(*pruner, 32);
    test::simulate_epochs(*pruner, 7, 20, 32);
  }
  EXPECT_EQ(resumed.serialize(), whole.serialize());
}

}  // namespace
}  // namespace tamis
