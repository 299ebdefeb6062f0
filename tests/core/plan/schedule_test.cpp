#include "tamis/schedule.h"

#include <gtest/gtest.h>

#include "support/golden.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

TEST(Schedule, PrunesTheEpochsThatTheAuthorsCodePrunes) {
  for (const auto& entry : test::load_golden("schedule.json")) {
    const Schedule schedule{.num_epochs = entry["num_epochs"], .delta = entry["delta"]};
    std::vector<std::uint64_t> pruned;
    for (std::uint64_t epoch = 0; epoch < schedule.num_epochs; ++epoch) {
      if (schedule.is_pruned(epoch)) pruned.push_back(epoch + 1);
    }
    EXPECT_EQ(pruned, entry["pruned_epochs_1_based"].get<std::vector<std::uint64_t>>());
  }
}

TEST(Schedule, FollowsTheRuleForEveryLengthAndDelta) {
  for (std::uint64_t num_epochs = 1; num_epochs <= 300; ++num_epochs) {
    for (int sixteenth = 0; sixteenth <= 16; ++sixteenth) {
      const Schedule schedule{.num_epochs = num_epochs, .delta = sixteenth / 16.0};
      for (std::uint64_t epoch = 0; epoch < num_epochs; ++epoch) {
        // e + 1 <= delta E, in whole numbers.
        const bool expected =
            (epoch + 1) * 16 <= static_cast<std::uint64_t>(sixteenth) * num_epochs;
        ASSERT_EQ(schedule.is_pruned(epoch), expected) << num_epochs << " " << sixteenth;
      }
    }
  }
}

TEST(Schedule, TakesDecimalSharesAsTheyAreWritten) {
  EXPECT_EQ((Schedule{.num_epochs = 10, .delta = 0.7}).num_pruned_epochs(), 7U);
  EXPECT_EQ((Schedule{.num_epochs = 100, .delta = 0.29}).num_pruned_epochs(), 29U);
  EXPECT_EQ((Schedule{.num_epochs = 1000, .delta = 0.999}).num_pruned_epochs(), 999U);
  EXPECT_EQ((Schedule{.num_epochs = 0xFFFF'FFFF, .delta = 1.0}).num_pruned_epochs(), 0xFFFF'FFFFU);
}

TEST(Schedule, RefusesValuesOutOfRange) {
  EXPECT_THROW(validate({.num_epochs = 0, .delta = 0.5}), std::invalid_argument);
  EXPECT_THROW(validate({.num_epochs = 0x1'0000'0000, .delta = 0.5}), std::invalid_argument);
  EXPECT_THROW(validate({.num_epochs = 1, .delta = -0.1}), std::invalid_argument);
  EXPECT_THROW(validate({.num_epochs = 1, .delta = 1.1}), std::invalid_argument);
  EXPECT_THROW(validate({.num_epochs = 1, .delta = std::numeric_limits<double>::quiet_NaN()}),
               std::invalid_argument);
}

// In the authors' code the weights stay wrong to the end when delta * E is not a whole number.
TEST(Schedule, AnnealingEpochsHaveAllSamplesWithWeightOne) {
  const std::vector<SampleIndex> easy = {0, 1, 2, 3};
  const std::vector<SampleIndex> hard = {4, 5};
  for (std::uint64_t num_epochs = 1; num_epochs <= 300; ++num_epochs) {
    for (int sixteenth = 0; sixteenth <= 16; ++sixteenth) {
      Pruner pruner({.num_samples = 6,
                     .num_epochs = num_epochs,
                     .score = Spec{"batch-loss"},
                     .delta = sixteenth / 16.0});
      pruner.observe(easy, 1.0);
      pruner.observe(hard, 2.0);
      const std::uint64_t first = pruner.schedule().num_pruned_epochs();
      if (first > 0) {
        EXPECT_EQ(pruner.start_epoch(first - 1).size(), 4U);
      }
      for (std::uint64_t epoch = first; epoch < num_epochs; ++epoch) {
        const EpochPlan& plan = pruner.start_epoch(epoch);
        ASSERT_EQ(plan.size(), 6U);
        ASSERT_FALSE(plan.pruning());
        for (std::size_t i = 0; i < 6; ++i) ASSERT_EQ(plan.weight_of(i), 1.0F);
      }
    }
  }
}

}  // namespace
}  // namespace tamis
