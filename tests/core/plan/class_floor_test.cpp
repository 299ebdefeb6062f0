#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "support/random_input.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

using Labels = std::vector<std::int32_t>;

// Class c has about twice the samples of class c + 1.
Labels random_labels(std::size_t n, std::mt19937_64& random) {
  Labels labels(n);
  for (auto& label : labels) {
    label = static_cast<std::int32_t>(std::countr_zero(random() | 0x80U)) * 17 - 40;
  }
  return labels;
}

std::map<std::int32_t, std::size_t> count(const Labels& labels, const EpochPlan* plan = nullptr) {
  std::map<std::int32_t, std::size_t> counts;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    counts[labels[i]] += plan == nullptr || plan->selection().kept.test(i) ? 1 : 0;
  }
  return counts;
}

Pruner make_scored(const PrunerOptions& options, std::span<const float> scores) {
  PrunerOptions with_losses = options;
  with_losses.score = Spec{"sample-loss"};
  Pruner pruner(with_losses);
  std::vector<std::uint32_t> scored;
  std::vector<float> losses;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) continue;
    scored.push_back(static_cast<std::uint32_t>(i));
    losses.push_back(scores[i]);
  }
  if (!scored.empty()) pruner.observe(scored, losses);
  return pruner;
}

TEST(ClassFloor, KeepsItsShareOfEveryClassForEveryPolicy) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto& policies = registered_policies();
    const std::size_t n = 1 + random() % 500;
    const double share = static_cast<double>(random() % 11) / 10.0;
    PrunerOptions options{.num_samples = n,
                          .num_epochs = 10,
                          .policy = {std::string(policies[random() % policies.size()].name)},
                          .seed = random(),
                          .homogeneous_batch_size = random() % 3 * 8,
                          .min_per_class = share,
                          .labels = random_labels(n, random)};
    const auto scores = test::random_scores(n, random(), 0.1);
    const EpochPlan plan = make_scored(options, scores).preview(random() % 10);
    PrunerOptions without = options;
    without.min_per_class = 0.0;
    without.homogeneous_batch_size = 0;
    const EpochPlan before = make_scored(without, scores).preview(plan.epoch());
    const auto kept = count(options.labels, &plan);
    for (const auto& [label, size] : count(options.labels)) {
      ASSERT_GE(static_cast<double>(kept.at(label)), share * static_cast<double>(size) - 1e-9);
    }
    for (const std::uint32_t i : before.order()) ASSERT_TRUE(plan.selection().kept.test(i));
    const std::size_t added = plan.size() - before.size();
    ASSERT_EQ(plan.selection().report.num_restored.value_or(0), added);
  }
}

TEST(ClassFloor, AddsNoMoreThanItNeeds) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t n = 400;
    PrunerOptions options{.num_samples = n,
                          .num_epochs = 10,
                          .policy = {"random-dynamic", {{"prune_ratio", 0.7}}},
                          .seed = random(),
                          .labels = random_labels(n, random)};
    const auto before = count(options.labels, nullptr);
    const EpochPlan plain = Pruner(options).preview(1);
    const auto kept_before = count(options.labels, &plain);
    options.min_per_class = 0.5;
    const EpochPlan plan = Pruner(options).preview(1);
    for (const auto& [label, kept] : count(options.labels, &plan)) {
      const std::size_t least = (before.at(label) + 1) / 2;
      ASSERT_EQ(kept, std::max(least, kept_before.at(label)));
    }
  }
}

TEST(ClassFloor, ChoosesUniformlyAmongThePrunedOfTheClass) {
  // trim leaves out the 40 of class 1, which score highest; half of them come back.
  Labels labels(100, 0);
  std::fill(labels.begin() + 60, labels.end(), 1);
  std::vector<float> scores(100);
  for (std::size_t i = 0; i < 100; ++i) scores[i] = static_cast<float>(i);
  std::vector<int> counts(100, 0);
  constexpr int kPlans = 4000;
  for (std::uint64_t seed = 0; seed < kPlans; ++seed) {
    const PrunerOptions options{.num_samples = 100,
                                .num_epochs = 10,
                                .policy = {"trim", {{"prune_ratio", 0.4}, {"warmup_epochs", 0}}},
                                .seed = seed,
                                .min_per_class = 0.5,
                                .labels = labels};
    const EpochPlan plan = make_scored(options, scores).preview(1);
    ASSERT_EQ(plan.size(), 80U);
    for (const std::uint32_t i : plan.order()) ++counts[i];
  }
  // 5.7 deviations of a fair coin, for 40 samples: fails by chance with probability below 1e-6.
  const double limit = 5.7 * std::sqrt(kPlans * 0.25);
  for (std::size_t i = 60; i < 100; ++i) EXPECT_NEAR(counts[i], kPlans / 2, limit) << i;
}

// InfoBatch keeps half of the easy class 1 with weight 2; a floor of 0.8 makes it 80 of 100, of
// which 20 keep the weight 2: the class counts 100 as before, and each of its samples 1 on average.
TEST(ClassFloor, KeepsTheWeightOfTheClass) {
  Labels labels(400, 0);
  std::fill(labels.begin(), labels.begin() + 100, 1);
  std::vector<float> scores(400, 10.0F);
  std::fill(scores.begin(), scores.begin() + 100, 1.0F);
  std::vector<double> sums(400, 0.0);
  constexpr int kPlans = 4000;
  for (std::uint64_t seed = 0; seed < kPlans; ++seed) {
    const PrunerOptions options{
        .num_samples = 400, .num_epochs = 10, .seed = seed, .min_per_class = 0.8, .labels = labels};
    const EpochPlan plan = make_scored(options, scores).preview(1);
    ASSERT_EQ(plan.size(), 380U);
    ASSERT_EQ(plan.selection().rescaled.count(), 20U);
    for (const std::uint32_t i : plan.order()) sums[i] += static_cast<double>(plan.weight_of(i));
  }
  // Weight 2 with probability 0.2, 1 with 0.6, 0 with 0.2: variance 0.4. 5.8 deviations.
  const double limit = 5.8 * std::sqrt(kPlans * 0.4);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_NEAR(sums[i], kPlans, limit) << i;
  for (std::size_t i = 100; i < 400; ++i) EXPECT_EQ(sums[i], kPlans) << i;
}

TEST(ClassFloor, SaysWhatIsWrong) {
  PrunerOptions options{.num_samples = 4, .num_epochs = 2, .min_per_class = 1.5};
  const auto message = [&] {
    try {
      Pruner pruner(options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(), "Pruner: min_per_class must be in [0, 1], got 1.5");
  options.min_per_class = 0.5;
  EXPECT_EQ(message(), "Pruner: labels for min_per_class must be as many as samples, got 0");
  options.labels = {3, -1, 3};
  EXPECT_EQ(message(), "Pruner: labels for min_per_class must be as many as samples, got 3");
  options.labels = {3, -1, 3, 7};
  EXPECT_EQ(message(), "no error");
}

}  // namespace
}  // namespace tamis
