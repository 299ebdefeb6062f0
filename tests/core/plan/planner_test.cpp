// Every policy with every option of the plan, on scores that are spread over ranks.
#include "core/plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "core/plan/weight_groups.h"
#include "core/policies/sharded_view.h"
#include "support/random_input.h"
#include "support/ranks.h"
#include "support/registered.h"
#include "tamis/registry.h"

namespace tamis::detail {
namespace {

constexpr std::size_t kSamples = 4001;
constexpr std::uint64_t kEpoch = 6;
constexpr double kLeastShare = 0.8;
constexpr std::size_t kBatchSize = 16;

const std::vector<float>& test_scores() {
  static const std::vector<float> scores = test::random_scores(kSamples, 11, 0.05);
  return scores;
}

PrunerOptions options_of(const std::string& policy) {
  return {.num_samples = kSamples, .num_epochs = 10, .policy = {policy}, .delta = 1.0, .seed = 8};
}

// Five classes of very different sizes, whose samples differ in score as well.
PrunerOptions with_class_floor(PrunerOptions options) {
  options.min_per_class = kLeastShare;
  for (const float score : test_scores()) {
    const int by_score = std::isnan(score) ? 0 : std::min(4, static_cast<int>(score));
    options.labels.push_back(10 * by_score - 20);
  }
  return options;
}

// The selections of all ranks put together.
struct Whole {
  Bitmap kept = Bitmap(kSamples);
  Bitmap rescaled = Bitmap(kSamples);
  float rescale = 1.0F;
  SelectionReport report = {};
  std::vector<std::size_t> num_rescaled = {};  // by rank

  double weight_sum() const {
    return static_cast<double>(kept.count()) +
           static_cast<double>(rescaled.count()) * (static_cast<double>(rescale) - 1.0);
  }
};

Whole select_on_ranks(const PrunerOptions& options, std::size_t num_ranks, RunSoFar run = {}) {
  Whole whole;
  whole.num_rescaled.resize(num_ranks);
  std::mutex mutex;
  test::run_ranks(num_ranks, [&](const auto& communicator) {
    const std::size_t begin = kSamples * communicator->rank() / num_ranks;
    const std::size_t size = kSamples * (communicator->rank() + 1) / num_ranks - begin;
    PrunerOptions filled = options;
    const auto policy = make_policy(options.policy);
    const Planner planner(filled, *policy, {.num_epochs = 10, .delta = 1.0}, begin, size);
    const std::span<const float> all = test_scores();
    const ShardedView scores(all.subspan(begin, size), begin, kSamples, *communicator);
    const Selection part = planner.select(scores, kEpoch, run);
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < size; ++i) {
      if (part.kept.test(i)) whole.kept.set(begin + i);
      if (!part.rescaled.empty() && part.rescaled.test(i)) whole.rescaled.set(begin + i);
    }
    whole.num_rescaled[communicator->rank()] = part.rescaled.count();
    whole.rescale = part.rescale;
    whole.report = part.report;
  });
  return whole;
}

// How many samples the rule of the policy keeps of test_scores().
std::size_t rule_count(const std::string& policy, const Whole& whole) {
  const auto share = [](double ratio) { return floor_share(1.0 - ratio, kSamples); };
  const SelectionReport& report = whole.report;
  if (policy == "none") return kSamples;
  if (policy == "infobatch") {
    const auto num_below = static_cast<std::size_t>(
        std::count_if(test_scores().begin(), test_scores().end(),
                      [&](float score) { return static_cast<double>(score) < *report.threshold; }));
    return kSamples - num_below + num_below / 2;
  }
  if (policy == "trim") return kSamples - floor_share(0.3, kSamples);
  if (policy != "seta") return share(0.3);
  // Of the random subset, the unscored and the groups of the window.
  std::size_t count = share(0.1);
  for (std::size_t g = 0; g < report.groups.size(); ++g) {
    if (g < *report.window_begin || g >= *report.window_end) count -= report.groups[g].size;
  }
  return count;
}

class ShardedPlan : public testing::TestWithParam<std::string> {};

TEST_P(ShardedPlan, HasTheCountsOfThePolicysRule) {
  for (const std::size_t num_ranks : {1U, 2U, 3U}) {
    const Whole whole = select_on_ranks(options_of(GetParam()), num_ranks);
    EXPECT_EQ(whole.kept.count(), rule_count(GetParam(), whole)) << num_ranks;
  }
}

TEST_P(ShardedPlan, KeepsALeastShareOfEveryClass) {
  PrunerOptions options = with_class_floor(options_of(GetParam()));
  for (const std::size_t num_ranks : {2U, 3U}) {
    const Whole plain = select_on_ranks(options_of(GetParam()), num_ranks);
    const Whole whole = select_on_ranks(options, num_ranks);
    std::vector<std::int32_t> labels = options.labels;
    const std::vector<std::size_t> sizes = number_classes(labels);
    for (std::size_t c = 0; c < sizes.size(); ++c) {
      std::size_t num_plain = 0;
      std::size_t num_kept = 0;
      for (std::size_t i = 0; i < kSamples; ++i) {
        if (static_cast<std::size_t>(labels[i]) != c) continue;
        num_plain += plain.kept.test(i) ? 1 : 0;
        num_kept += whole.kept.test(i) ? 1 : 0;
        EXPECT_TRUE(whole.kept.test(i) || !plain.kept.test(i));
      }
      const std::size_t least = sizes[c] - floor_share(1.0 - kLeastShare, sizes[c]);
      EXPECT_EQ(num_kept, std::max(num_plain, least)) << "class " << c;
    }
    EXPECT_EQ(whole.report.num_restored.value_or(0), whole.kept.count() - plain.kept.count());
    Bitmap outside = whole.rescaled;
    outside -= whole.kept;
    EXPECT_EQ(outside.count(), 0U);
    if (plain.rescaled.count() > 0) {
      EXPECT_NEAR(whole.weight_sum(), plain.weight_sum(), 5.0);
    }
  }
}

TEST_P(ShardedPlan, GivesEveryRankWholeBatchesOfOneWeight) {
  PrunerOptions options = options_of(GetParam());
  options.homogeneous_batch_size = kBatchSize;
  for (const std::size_t num_ranks : {1U, 2U, 3U}) {
    const Whole plain = select_on_ranks(options_of(GetParam()), num_ranks);
    const Whole whole = select_on_ranks(options, num_ranks);
    for (const std::size_t num_rescaled : whole.num_rescaled) {
      EXPECT_EQ(num_rescaled % kBatchSize, 0U);
    }
    EXPECT_EQ(whole.report.num_restored.value_or(0), whole.kept.count() - plain.kept.count());
    EXPECT_LT(whole.kept.count() - plain.kept.count(), num_ranks * kBatchSize);
    EXPECT_NEAR(whole.weight_sum(), plain.weight_sum(), 1e-3);
  }
}

TEST_P(ShardedPlan, FollowsTheTargetOrRefusesIt) {
  PrunerOptions options = options_of(GetParam());
  options.target_prune = 0.3;
  const double max_ratio = make_policy({GetParam()})->max_prune_ratio();
  if (max_ratio == 0.0) {
    EXPECT_THROW(select_on_ranks(options, 2), std::runtime_error);
    return;
  }
  // Six epochs have left out 25 % each, so the last four need 37.5 %.
  const RunSoFar run{.num_epochs_started = 6, .num_samples_planned = 6 * kSamples * 3 / 4};
  for (const std::size_t num_ranks : {1U, 2U, 3U}) {
    const Whole whole = select_on_ranks(options, num_ranks, run);
    EXPECT_NEAR(static_cast<double>(kSamples - whole.kept.count()), 0.375 * kSamples, 12.0);
    ASSERT_TRUE(whole.report.prune_ratio);
    EXPECT_LE(*whole.report.prune_ratio, max_ratio);
    EXPECT_LE(*whole.report.lowest_reachable, 0.3);
    EXPECT_GE(*whole.report.highest_reachable, 0.3);
  }
}

TEST_P(ShardedPlan, DoesNotDependOnTheNumberOfRanks) {
  std::vector<PrunerOptions> variants = {options_of(GetParam()),
                                         with_class_floor(options_of(GetParam()))};
  if (make_policy({GetParam()})->max_prune_ratio() > 0.0) {
    for (std::size_t k = 0; k < 2; ++k) {
      variants.push_back(variants[k]);
      variants.back().target_prune = 0.2;
    }
  }
  for (const PrunerOptions& options : variants) {
    const Whole one = select_on_ranks(options, 1);
    for (const std::size_t num_ranks : {2U, 3U, 4U}) {
      const Whole several = select_on_ranks(options, num_ranks);
      EXPECT_EQ(several.kept, one.kept) << num_ranks;
      EXPECT_EQ(several.rescaled, one.rescaled) << num_ranks;
      EXPECT_EQ(several.rescale, one.rescale);
      EXPECT_EQ(several.report.num_restored, one.report.num_restored);
      EXPECT_EQ(several.report.prune_ratio, one.report.prune_ratio);
    }
  }
}

TEST_P(ShardedPlan, TakesAllOptionsOfThePlanTogether) {
  PrunerOptions options = with_class_floor(options_of(GetParam()));
  options.homogeneous_batch_size = kBatchSize;
  if (make_policy({GetParam()})->max_prune_ratio() > 0.0) options.target_prune = 0.15;
  for (const std::size_t num_ranks : {2U, 3U}) {
    const Whole whole = select_on_ranks(options, num_ranks);
    for (const std::size_t num_rescaled : whole.num_rescaled) {
      EXPECT_EQ(num_rescaled % kBatchSize, 0U);
    }
    EXPECT_GE(whole.kept.count(), floor_share(kLeastShare, kSamples));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ShardedPlan, testing::ValuesIn(test::names_of(registered_policies())),
                         test::test_name);

// Where a rank has fewer pruned samples than would fill its last batch, it takes them all.
TEST(FillBatches, WithoutEnoughPrunedSamplesARankUsesAllOfItsOwn) {
  test::run_ranks(2, [](const auto& communicator) {
    const std::vector<float> scores(100, 1.0F);
    const ShardedView view(scores, 100 * communicator->rank(), 200, *communicator);
    // Rank 0 prunes 30 and rescales 30 of its samples, rank 1 prunes 3 and rescales 5.
    const bool is_first = communicator->rank() == 0;
    Selection selection{
        .kept = Bitmap(100, true), .rescaled = Bitmap(100), .rescale = 2.0F, .report = {}};
    for (std::size_t i = 0; i < (is_first ? 30U : 3U); ++i) selection.kept.clear(i);
    for (std::size_t i = 50; i < (is_first ? 80U : 55U); ++i) selection.rescaled.set(i);
    RandomStream random(1, 2, Purpose::whole_batches);
    EXPECT_EQ(fill_batches(view, 16, random, selection), 5U);
    EXPECT_EQ(selection.kept.count(), is_first ? 72U : 100U);
    EXPECT_EQ(selection.rescaled.count(), is_first ? 32U : 0U);
    EXPECT_FLOAT_EQ(selection.rescale, 2.0F * 30.0F / 32.0F);
  });
}

}  // namespace
}  // namespace tamis::detail
