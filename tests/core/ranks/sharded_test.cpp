#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <set>

#include "core/grouping/kmeans_1d.h"
#include "support/ranks.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

using test::errors_of_ranks;
using test::run_ranks;
using test::simulate_epochs;
using testing::HasSubstr;

PrunerOptions options_with(const Spec& policy, std::size_t num_samples) {
  return {.num_samples = num_samples,
          .num_epochs = 6,
          .policy = policy,
          .score = Spec{"sample-loss"},
          .seed = 3,
          .layout = Layout::sharded};
}

// Scores of all samples and the selection of epoch 2 from them.
struct Epoch {
  std::vector<float> scores;
  std::vector<bool> kept;
  std::vector<float> weights;
  SelectionReport report = {};
  std::uint64_t bytes = 0;  // of rank 0 for this epoch, both ways
};

// The loss of every sample, which does not depend on how batches are made.
void observe_all(Pruner& pruner) {
  const EpochPlan& plan = *pruner.plan();
  std::vector<float> losses;
  for (std::size_t j = 0; j < plan.size(); ++j) {
    const auto sample = static_cast<std::uint32_t>(plan.sample(j));
    losses.push_back(test::simulated_loss(sample, plan.epoch()));
  }
  pruner.observe(0, losses);
}

Epoch run_two_epochs(const PrunerOptions& options, std::size_t num_ranks) {
  Epoch result{.scores = std::vector<float>(options.num_samples),
               .kept = std::vector<bool>(options.num_samples),
               .weights = std::vector<float>(options.num_samples, 0.0F)};
  std::mutex mutex;
  run_ranks(num_ranks, [&](const auto& communicator) {
    Pruner pruner(options, communicator);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      pruner.start_epoch(epoch);
      observe_all(pruner);
    }
    const std::vector<float> scores = pruner.scores();
    const std::uint64_t before = communicator->bytes_sent() + communicator->bytes_received();
    const EpochPlan& plan = pruner.start_epoch(2);
    const std::lock_guard lock(mutex);
    const std::size_t first = pruner.first_sample();
    std::copy(scores.begin(), scores.end(),
              result.scores.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::size_t j = 0; j < plan.size(); ++j) {
      const auto sample = static_cast<std::size_t>(plan.sample(j));
      result.kept[sample] = true;
      result.weights[sample] = plan.weight(j);
    }
    if (communicator->rank() != 0) return;
    result.report = plan.report();
    result.bytes = communicator->bytes_sent() + communicator->bytes_received() - before;
  });
  return result;
}

TEST(Sharded, InfoBatchUsesTheExactGlobalMean) {
  const PrunerOptions options = options_with({"infobatch"}, 5003);
  for (const std::size_t num_ranks : {1U, 2U, 3U, 4U}) {
    const Epoch epoch = run_two_epochs(options, num_ranks);
    long double sum = 0.0L;
    for (const float score : epoch.scores) sum += score;
    const auto mean = static_cast<double>(sum / 5003.0L);
    EXPECT_DOUBLE_EQ(epoch.report.threshold.value(), mean);
    std::size_t num_easy = 0;
    std::size_t num_easy_kept = 0;
    for (std::size_t i = 0; i < 5003; ++i) {
      if (static_cast<double>(epoch.scores[i]) < mean) {
        ++num_easy;
        num_easy_kept += epoch.kept[i] ? 1 : 0;
        EXPECT_EQ(epoch.weights[i], epoch.kept[i] ? 2.0F : 0.0F);
      } else {
        EXPECT_TRUE(epoch.kept[i]);
        EXPECT_EQ(epoch.weights[i], 1.0F);
      }
    }
    EXPECT_EQ(num_easy_kept, num_easy / 2);
  }
}

TEST(Sharded, SelectionDoesNotDependOnTheNumberOfRanks) {
  for (const char* policy : {"infobatch", "seta", "random", "random-dynamic", "ucb"}) {
    const PrunerOptions options = options_with({policy}, 5003);
    const Epoch one = run_two_epochs(options, 1);
    for (const std::size_t num_ranks : {2U, 3U, 4U}) {
      const Epoch several = run_two_epochs(options, num_ranks);
      ASSERT_EQ(std::memcmp(several.scores.data(), one.scores.data(), 5003 * sizeof(float)), 0);
      EXPECT_EQ(several.kept, one.kept) << policy << " on " << num_ranks;
    }
  }
}

TEST(Sharded, SetaFindsTheGroupsOfOneProcess) {
  const std::size_t n = 20'000;
  const Epoch epoch = run_two_epochs(options_with({"seta", {{"prune_ratio", 0.0}}}, n), 3);
  const auto single = detail::kmeans_1d(epoch.scores, Bitmap(n, true), 5);
  ASSERT_EQ(epoch.report.groups.size(), 5U);
  EXPECT_LE(epoch.report.within_group_sum_of_squares.value(),
            single.within_group_sum_of_squares * (1.0 + 1e-5));
  std::size_t total = 0;
  for (const ScoreGroup& group : epoch.report.groups) total += group.size;
  EXPECT_EQ(total, n);
}

TEST(Sharded, GroupsOfMoreScoresThanAreSortedAreAsGood) {
  const std::size_t n = 300'000;
  for (const double groups : {2.0, 5.0, 20.0}) {
    const Epoch epoch =
        run_two_epochs(options_with({"seta", {{"prune_ratio", 0.0}, {"groups", groups}}}, n), 2);
    const auto single =
        detail::kmeans_1d(epoch.scores, Bitmap(n, true), static_cast<std::size_t>(groups));
    EXPECT_LE(epoch.report.within_group_sum_of_squares.value(),
              single.within_group_sum_of_squares * (1.0 + 1e-5));
    EXPECT_LE(epoch.bytes, 1U << 20U) << groups;
  }
}

TEST(Sharded, ExchangesAtMostFourKibForInfoBatch) {
  for (const std::size_t n : {1000U, 30'000U, 1'000'000U}) {
    EXPECT_LE(run_two_epochs(options_with({"infobatch"}, n), 4).bytes, 4096U) << n;
  }
}

TEST(Sharded, RanksAgreeOnTheNumbersOfAScore) {
  for (const char* score : {"reconstruction", "batch-loss-mean", "batch-loss"}) {
    run_ranks(3, [&](const auto& communicator) {
      PrunerOptions options = options_with({"infobatch"}, 999);
      options.score = Spec{score};
      Pruner pruner(options, communicator);
      simulate_epochs(pruner, 0, 2, 16);
      pruner.exchange();
      std::vector<double> numbers;
      for (const auto& [name, value] : pruner.scorer().numbers()) numbers.push_back(value);
      std::vector<double> least = numbers;
      communicator->all_reduce(least, Reduction::minimum);
      communicator->all_reduce(numbers, Reduction::maximum);
      EXPECT_EQ(least, numbers) << score;
    });
  }
}

TEST(Sharded, ReconstructionsMeanIsNearThatOfOneProcess) {
  double means[2] = {0.0, 0.0};
  for (const std::size_t num_ranks : {1U, 4U}) {
    run_ranks(num_ranks, [&](const auto& communicator) {
      PrunerOptions options = options_with({"none"}, 4000);
      options.score = Spec{"reconstruction"};
      Pruner pruner(options, communicator);
      simulate_epochs(pruner, 0, 3, 16);
      pruner.exchange();
      if (communicator->rank() == 0) {
        means[num_ranks == 1 ? 0 : 1] = pruner.scorer().numbers().at("mean_loss");
      }
    });
  }
  EXPECT_NEAR(means[1], means[0], 0.05 * means[0]);
}

TEST(Sharded, SamplesAbove31And32BitsAreExact) {
  // One of many ranks with 1000 samples each.
  for (const std::size_t rank : {2'200'000U, 9'999'999U}) {
    const auto communicator = std::make_shared<test::LonelyRank>(rank, 10'000'000);
    PrunerOptions options = options_with({"infobatch"}, 10'000'000'000);
    Pruner pruner(options, communicator);
    const auto first = static_cast<SampleIndex>(rank) * 1000;
    EXPECT_EQ(pruner.first_sample(), static_cast<std::uint64_t>(first));
    const EpochPlan& plan = pruner.start_epoch(0);
    std::set<SampleIndex> samples;
    for (std::size_t j = 0; j < plan.size(); ++j) samples.insert(plan.sample(j));
    ASSERT_EQ(samples.size(), 1000U);
    EXPECT_EQ(*samples.begin(), first);
    EXPECT_EQ(*samples.rbegin(), first + 999);
    const std::vector<SampleIndex> one = {first + 123};
    const float loss = 7.0F;
    pruner.observe(one, std::span(&loss, 1));
    EXPECT_EQ(pruner.scores()[123], 7.0F);
    const std::vector<SampleIndex> other = {first - 1};
    EXPECT_THROW(pruner.observe(other, std::span(&loss, 1)), std::out_of_range);
  }
}

TEST(Sharded, RefusesToGoOnInTheMiddleOfAnEpochWithOtherRanks) {
  std::vector<std::byte> state;
  const PrunerOptions options = options_with({"infobatch"}, 1000);
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner(options, communicator);
    pruner.start_epoch(0);
    test::simulate_step(pruner, 32);
    const auto bytes = pruner.serialize();
    if (communicator->rank() == 0) state = bytes;
  });
  const auto errors = errors_of_ranks(
      3, [&](const auto& communicator) { Pruner(options, communicator).deserialize(state); });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("saved in the middle of an epoch by 2 ranks"));
  }
  Pruner single(options);
  EXPECT_THROW(single.deserialize(state), std::runtime_error);
}

TEST(Sharded, FollowsTheOptionsOfThePlanAndResumesExactly) {
  PrunerOptions options = options_with({"infobatch"}, 2000);
  options.num_epochs = 10;
  options.homogeneous_batch_size = 16;
  options.min_per_class = 0.5;
  options.target_prune = 0.25;
  for (std::size_t i = 0; i < 2000; ++i) {
    options.labels.push_back(static_cast<std::int32_t>(i % 7 * i % 5));
  }
  run_ranks(3, [&](const auto& communicator) {
    Pruner whole(options, communicator);
    simulate_epochs(whole, 0, 5, 16);
    Pruner resumed(options, communicator);
    resumed.deserialize(whole.serialize());
    simulate_epochs(whole, 5, 10, 16);
    simulate_epochs(resumed, 5, 10, 16);
    EXPECT_NEAR(whole.pruned_share(), 0.25, 0.01);
    EXPECT_EQ(resumed.serialize(), whole.serialize());
  });
}

TEST(Sharded, RefusesToRecord) {
  for (const std::string& error : errors_of_ranks(2, [&](const auto& communicator) {
         Pruner(options_with({"infobatch"}, 100), communicator).record("nowhere");
       })) {
    EXPECT_THAT(error, HasSubstr("a run in the sharded layout cannot be recorded"));
  }
}

TEST(Sharded, KnowsTheWeightsOfItsPartOnly) {
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner(options_with({"infobatch"}, 101), communicator);
    pruner.start_epoch(0);
    observe_all(pruner);
    const EpochPlan& plan = pruner.start_epoch(1);
    double sum = 0.0;
    std::vector<SampleIndex> samples(plan.size());
    plan.copy_to(0, samples);
    for (std::size_t j = 0; j < plan.size(); ++j) {
      ASSERT_EQ(samples[j], plan.sample(j));
      ASSERT_EQ(plan.weight_of(samples[j]), plan.weight(j));
      sum += static_cast<double>(plan.weight(j));
    }
    EXPECT_DOUBLE_EQ(plan.mean_weight_of(samples), plan.mean_weight(0, plan.size()));
    EXPECT_NEAR(plan.mean_weight(0, plan.size()), sum / static_cast<double>(plan.size()), 1e-12);
    const SampleIndex other = communicator->rank() == 0 ? 51 : 50;
    EXPECT_THROW((void)plan.weight_of(other), std::out_of_range);
    EXPECT_THROW((void)plan.mean_weight(1, plan.size()), std::out_of_range);
  });
}

TEST(Sharded, NeedsASampleForEveryRank) {
  for (const std::string& error : errors_of_ranks(4, [&](const auto& communicator) {
         Pruner(options_with({"infobatch"}, 3), communicator);
       })) {
    EXPECT_THAT(error, HasSubstr("num_samples must be at least one per rank (4), got 3"));
  }
}

}  // namespace
}  // namespace tamis
