#include "tamis/pruner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <thread>

#include "base/rounding.h"
#include "support/random_input.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

using Batch = std::vector<SampleIndex>;

PrunerOptions bls_infobatch(std::size_t n, std::uint64_t num_epochs = 100) {
  return {.num_samples = n, .num_epochs = num_epochs, .score = Spec{"batch-loss"}};
}

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

// Trains nothing: books a loss that grows with the index on every batch of the epoch.
void run_epoch(Pruner& pruner, std::uint64_t epoch, std::size_t batch_size) {
  const auto order = pruner.start_epoch(epoch).order();
  for (std::size_t k = 0; k < order.size(); k += batch_size) {
    const auto batch = order.subspan(k, std::min(batch_size, order.size() - k));
    double sum = 0.0;
    for (const auto i : batch) sum += 1.0 + static_cast<double>(i) / 100.0;
    pruner.observe(batch, sum / static_cast<double>(batch.size()));
    pruner.set_position(k + batch.size());
  }
}

TEST(Pruner, FillsInTheDefaultsOfPolicyAndScore) {
  const Pruner pruner({.num_samples = 10, .num_epochs = 8});
  EXPECT_EQ(pruner.options().policy.options.at("prune_ratio"), 0.5);
  EXPECT_EQ(pruner.options().score->name, "sample-loss");
  EXPECT_EQ(*pruner.options().delta, 0.875);
}

TEST(Pruner, PlansAreTheSameForTheSameHistoryAndOtherwiseNot) {
  Pruner a(bls_infobatch(500));
  Pruner b(bls_infobatch(500));
  auto other_seed = bls_infobatch(500);
  other_seed.seed = 1;
  Pruner c(other_seed);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    for (Pruner* pruner : {&a, &b, &c}) run_epoch(*pruner, epoch, 32);
    const auto order = [](const Pruner& p) {
      return std::vector<std::uint32_t>(p.plan()->order().begin(), p.plan()->order().end());
    };
    EXPECT_EQ(order(a), order(b));
    EXPECT_NE(order(a), order(c));
  }
}

TEST(Pruner, AskingTwiceForAPlanGivesTheSameEvenAfterObservations) {
  Pruner pruner(bls_infobatch(200));
  run_epoch(pruner, 0, 16);
  const auto first = pruner.start_epoch(1).order();
  const std::vector<std::uint32_t> before(first.begin(), first.end());
  pruner.observe(Batch{1, 2, 3}, 100.0);
  const auto second = pruner.start_epoch(1).order();
  EXPECT_EQ(before, std::vector<std::uint32_t>(second.begin(), second.end()));
}

TEST(Pruner, PreviewChangesNothing) {
  Pruner pruner(bls_infobatch(200));
  run_epoch(pruner, 0, 16);
  const auto preview = pruner.preview(1);
  EXPECT_EQ(pruner.plan()->epoch(), 0U);
  const auto order = pruner.start_epoch(1).order();
  EXPECT_TRUE(
      std::equal(order.begin(), order.end(), preview.order().begin(), preview.order().end()));
}

TEST(Pruner, PlansHoldUniqueIndicesWithTheWeightsOfTheSelection) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto& policies = registered_policies();
    const std::size_t n = 1 + random() % 300;
    Pruner pruner({.num_samples = n,
                   .num_epochs = 1 + random() % 20,
                   .policy = {std::string(policies[random() % policies.size()].name)},
                   .score = Spec{"batch-loss"},
                   .seed = random()});
    for (int k = 0; k < 5; ++k) {
      pruner.observe(Batch{static_cast<SampleIndex>(random() % n)},
                     static_cast<double>(random() % 100));
    }
    const auto& plan = pruner.start_epoch(random() % pruner.schedule().num_epochs);
    const std::set<std::uint32_t> unique(plan.order().begin(), plan.order().end());
    ASSERT_EQ(unique.size(), plan.size());
    ASSERT_TRUE(unique.empty() || *unique.rbegin() < n);
    ASSERT_EQ(plan.size() + plan.num_pruned(), n);
    for (const std::uint32_t i : plan.order()) {
      const float weight = plan.weight_of(i);
      ASSERT_TRUE(weight == 1.0F || (plan.pruning() && weight == plan.selection().rescale));
    }
  }
}

TEST(Pruner, MeanWeightIsTheMeanOfTheWeights) {
  Pruner pruner(bls_infobatch(300));
  run_epoch(pruner, 0, 7);
  const auto& plan = pruner.start_epoch(1);
  Batch batch(16);
  plan.copy_to(40, batch);
  double sum = 0.0;
  for (const auto i : batch) sum += static_cast<double>(plan.weight_of(i));
  EXPECT_DOUBLE_EQ(plan.mean_weight_of(batch), sum / 16.0);
  EXPECT_GT(plan.mean_weight_of(batch), 1.0);
  EXPECT_THROW((void)plan.mean_weight_of(Batch{300}), std::out_of_range);
  EXPECT_THROW((void)plan.mean_weight_of(Batch{-1}), std::out_of_range);
}

TEST(Pruner, CountsBadLossesAndGoesOn) {
  Pruner pruner(bls_infobatch(10));
  EXPECT_TRUE(pruner.observe(Batch{0, 1}, 2.0));
  const auto before = pruner.scores();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), infinity, -infinity, 1e300}) {
    EXPECT_FALSE(pruner.observe(Batch{0, 2}, bad));
  }
  const std::vector<float> one_bad = {1.0F, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_FALSE(pruner.observe(Batch{0, 2}, one_bad));
  EXPECT_EQ(pruner.num_skipped_observations(), 5U);
  EXPECT_EQ(pruner.num_observations(), 1U);
  EXPECT_EQ(pruner.scores()[0], before[0]);
  EXPECT_TRUE(std::isnan(pruner.scores()[2]));
  EXPECT_TRUE(pruner.observe(Batch{0, 2}, 3.0));
}

TEST(Pruner, ABadFirstLossIsNotTheInitialScore) {
  Pruner pruner(bls_infobatch(4));
  pruner.observe(Batch{0}, std::nan(""));
  pruner.observe(Batch{1}, 2.0);
  EXPECT_EQ(pruner.scores()[1], 2.0F);
}

TEST(Pruner, AcceptsNegativeLosses) {
  Pruner pruner(bls_infobatch(4));
  EXPECT_TRUE(pruner.observe(Batch{0}, -2.0));
  EXPECT_EQ(pruner.scores()[0], -2.0F);
}

TEST(Pruner, ObservesByPositionAsBySample) {
  for (const char* score : {"batch-loss", "reconstruction", "loss-average", "sample-loss"}) {
    PrunerOptions options = bls_infobatch(1000);
    options.score = Spec{score};
    Pruner by_position(options);
    Pruner by_sample(options);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const EpochPlan& plan = by_position.start_epoch(epoch);
      by_sample.start_epoch(epoch);
      for (std::size_t begin = 0; begin < plan.size(); begin += 30) {
        Batch batch(std::min<std::size_t>(30, plan.size() - begin));
        plan.copy_to(begin, batch);
        std::vector<float> losses;
        for (const SampleIndex i : batch) losses.push_back(1.0F + static_cast<float>(i % 17));
        if (by_position.scorer().needs() == LossKind::sample_losses) {
          EXPECT_TRUE(by_position.observe(begin, losses));
          EXPECT_TRUE(by_sample.observe(batch, losses));
        } else {
          const double mean = static_cast<double>(losses[0]);
          EXPECT_TRUE(by_position.observe(begin, batch.size(), mean));
          EXPECT_TRUE(by_sample.observe(batch, mean));
        }
      }
    }
    EXPECT_EQ(by_position.serialize(), by_sample.serialize()) << score;
  }
}

TEST(Pruner, SaysWhatIsWrongWithABatchOfThePlan) {
  Pruner pruner(bls_infobatch(10));
  EXPECT_EQ(message_of([&] { pruner.observe(0, 1, 1.0); }),
            "Pruner: no epoch is running; call start_epoch first");
  pruner.start_epoch(0);
  EXPECT_EQ(message_of([&] { pruner.observe(8, 3, 1.0); }),
            "Pruner: samples [8, 11) must be in a plan of 10");
  EXPECT_EQ(message_of([&] { pruner.observe(10, 0, 1.0); }),
            "Pruner: a batch must have at least one sample, got 0");
  EXPECT_FALSE(pruner.observe(0, 2, std::nan("")));
  EXPECT_EQ(pruner.num_skipped_observations(), 1U);
  EXPECT_EQ(pruner.num_scored(), 0U);
}

TEST(Pruner, CopiesOfAPlanOutliveIt) {
  Pruner pruner(bls_infobatch(100));
  const EpochPlan first = pruner.start_epoch(0);
  const std::vector<std::uint32_t> order(first.order().begin(), first.order().end());
  pruner.start_epoch(1);
  EXPECT_EQ(first.epoch(), 0U);
  EXPECT_TRUE(std::equal(order.begin(), order.end(), first.order().begin(), first.order().end()));
}

TEST(Pruner, SaysWhatIsWrongWithABatch) {
  Pruner pruner(bls_infobatch(10));
  EXPECT_EQ(message_of([&] {
              pruner.observe(Batch{0, 10}, 1.0);
            }),
            "Pruner: index must be in [0, 10), got 10");
  EXPECT_EQ(message_of([&] { pruner.observe(Batch{-1}, 1.0); }),
            "Pruner: index must be in [0, 10), got -1");
  EXPECT_EQ(message_of([&] { pruner.observe(Batch{SampleIndex{1} << 32U}, 1.0); }),
            "Pruner: index must be in [0, 10), got 4294967296");
  EXPECT_EQ(message_of([&] { pruner.observe(Batch{}, 1.0); }),
            "Pruner: a batch must have at least one sample, got 0");
  const std::vector<float> losses = {1.0F, 2.0F};
  EXPECT_EQ(message_of([&] { pruner.observe(Batch{1}, losses); }),
            "Pruner: losses must be as many as indices (1), got 2");
  EXPECT_EQ(pruner.num_observations(), 0U);
  EXPECT_EQ(pruner.num_scored(), 0U);
}

TEST(Pruner, AScoreOfSampleLossesRefusesTheMean) {
  Pruner pruner({.num_samples = 10, .num_epochs = 3});
  EXPECT_NE(message_of([&] {
              pruner.observe(Batch{1, 2}, 1.0);
            }).find("needs one loss per sample"),
            std::string::npos);
  const std::vector<float> losses = {1.0F, 2.0F};
  EXPECT_TRUE(pruner.observe(Batch{1, 2}, losses));
}

TEST(Pruner, SaysWhatIsWrongWithItsOptions) {
  EXPECT_EQ(message_of([] { Pruner({.num_samples = 0, .num_epochs = 1}); }),
            "Pruner: num_samples must be in [1, 2^32 - 1], got 0");
  EXPECT_EQ(message_of([] { Pruner({.num_samples = 1, .num_epochs = 0}); }),
            "Schedule: num_epochs must be in [1, 4294967295], got 0");
  EXPECT_EQ(message_of([] { Pruner({.num_samples = 1, .num_epochs = 1, .delta = 1.5}); }),
            "Schedule: delta must be in [0, 1], got 1.5");
  EXPECT_EQ(
      message_of([] {
        Pruner(
            {.num_samples = 1, .num_epochs = 1, .policy = {"infobatch", {{"prune_ratio", 0.95}}}});
      }),
      "infobatch: prune_ratio must be in [0, 0.9], got 0.95");
}

TEST(Pruner, KnowsOnlyTheEpochsOfItsRun) {
  Pruner pruner(bls_infobatch(10, 3));
  run_epoch(pruner, 2, 4);
  const auto plan_size = pruner.plan()->size();
  EXPECT_THROW(pruner.start_epoch(3), std::out_of_range);
  ASSERT_NE(pruner.plan(), nullptr);
  EXPECT_EQ(pruner.plan()->size(), plan_size);
  EXPECT_THROW(pruner.set_position(11), std::out_of_range);
}

TEST(Pruner, ProgressGrowsFromZeroToOne) {
  Pruner pruner(bls_infobatch(101, 7));
  double last = pruner.progress();
  EXPECT_EQ(last, 0.0);
  for (std::uint64_t epoch = 0; epoch < 7; ++epoch) {
    const std::size_t size = pruner.start_epoch(epoch).size();
    for (std::size_t k = 1; k <= size; ++k) {
      pruner.set_position(k);
      EXPECT_GT(pruner.progress(), last);
      last = pruner.progress();
    }
  }
  EXPECT_DOUBLE_EQ(last, 1.0);
}

TEST(Pruner, ReportsThePrunedShare) {
  Pruner pruner({.num_samples = 100,
                 .num_epochs = 10,
                 .policy = {"random-dynamic", {{"prune_ratio", 0.25}}},
                 .delta = 0.5});
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) pruner.start_epoch(epoch);
  EXPECT_DOUBLE_EQ(pruner.pruned_share(), 0.125);
}

TEST(Pruner, CountsBatchesOfTheComingEpoch) {
  Pruner pruner(bls_infobatch(100));
  const auto& plan = pruner.start_epoch(0);
  EXPECT_EQ(plan.num_batches(32), 4U);
  EXPECT_EQ(plan.num_batches(32, true), 3U);
  EXPECT_EQ(plan.num_batches(100, true), 1U);
  EXPECT_THROW((void)plan.num_batches(0), std::invalid_argument);
}

TEST(Pruner, ConstCallsRunSideBySide) {
  Pruner pruner(bls_infobatch(20000));
  run_epoch(pruner, 0, 100);
  const Pruner& shared = pruner;
  const auto expected = shared.preview(1);
  std::vector<std::thread> threads;
  std::array<bool, 4> same{};
  for (std::size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      const auto plan = shared.preview(1);
      same[t] = std::equal(plan.order().begin(), plan.order().end(), expected.order().begin(),
                           expected.order().end()) &&
                shared.num_scored() == 20000 && shared.plan()->weight_of(t) == 1.0F;
    });
  }
  for (auto& thread : threads) thread.join();
  for (const bool ok : same) EXPECT_TRUE(ok);
}

// A batch that is a part of the plan is booked in place, a copy of it is not.
TEST(Pruner, ScoresAPlannedBatchAsACopyOfIt) {
  for (const ScorerInfo& info : registered_scorers()) {
    const PrunerOptions options{
        .num_samples = 1000, .num_epochs = 3, .score = Spec{std::string(info.name)}};
    Pruner planned(options);
    Pruner copied(options);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const auto order = planned.start_epoch(epoch).order();
      copied.start_epoch(epoch);
      for (std::size_t k = 0; k < order.size(); k += 32) {
        const auto batch = order.subspan(k, std::min<std::size_t>(32, order.size() - k));
        std::vector<float> losses;
        for (const auto i : batch) losses.push_back(0.5F + static_cast<float>((i * 7) % 13));
        planned.observe(batch, losses, losses);
        copied.observe(std::vector<std::uint32_t>(batch.begin(), batch.end()), losses, losses);
      }
    }
    EXPECT_EQ(planned.serialize(), copied.serialize()) << info.name;
  }
}

TEST(EpochPlan, IsShuffledOnceByWhicheverThreadReadsItFirst) {
  const Pruner pruner(bls_infobatch(200'000));
  const EpochPlan plan = pruner.preview(0);
  const EpochPlan copy = plan;
  std::array<std::span<const std::uint32_t>, 4> seen;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    threads.emplace_back([&, t] { seen[t] = (t % 2 == 0 ? plan : copy).order(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto order : seen) EXPECT_EQ(order.data(), plan.order().data());
  EXPECT_EQ(std::set<std::uint32_t>(seen[0].begin(), seen[0].end()).size(), 200'000U);
}

}  // namespace
}  // namespace tamis
