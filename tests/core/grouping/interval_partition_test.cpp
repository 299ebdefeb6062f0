#include "core/grouping/interval_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "support/moments.h"
#include "support/optimal_grouping.h"

namespace tamis::detail {
namespace {

using test::optimal_grouping;
using test::OptimalGrouping;

std::vector<double> random_sorted(std::size_t n, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const auto kind = random() % 4;
  std::vector<double> values(n);
  for (double& value : values) {
    value = uniform(random);
    if (kind == 1) value = std::exp(12.0 * value);
    if (kind == 2) value = std::floor(8.0 * value);
    if (kind == 3) value = 1e6 + std::round(64.0 * value) / 16.0;
  }
  std::sort(values.begin(), values.end());
  return values;
}

Block block_of(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  Block block{.moments = {.count = 1.0, .base = values[begin]},
              .low = values[begin],
              .high = values[end - 1]};
  for (std::size_t i = begin + 1; i < end; ++i) {
    block.moments = merge(block.moments, {.count = 1.0, .base = values[i]});
  }
  return block;
}

// Values in random blocks; begins[b] is the first value of block b.
struct Blocks {
  std::vector<Block> blocks;
  std::vector<std::size_t> begins;
};
Blocks random_blocks(const std::vector<double>& values, std::mt19937_64& random) {
  Blocks result;
  const std::size_t longest = 1 + random() % 6;
  for (std::size_t begin = 0; begin < values.size();) {
    const std::size_t end = std::min(values.size(), begin + 1 + random() % longest);
    result.blocks.push_back(block_of(values, begin, end));
    result.begins.push_back(begin);
    begin = end;
  }
  result.begins.push_back(values.size());
  return result;
}

std::vector<Window> all_positions(std::size_t num_blocks, std::size_t groups) {
  std::vector<Window> windows(groups + 1, {.first = 0, .last = num_blocks});
  windows.front().last = 0;
  windows.back().first = num_blocks;
  return windows;
}

TEST(Moments, OfMergedSetsAreThoseOfTheUnion) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<double> values = random_sorted(2 + random() % 50, random);
    const std::size_t middle = 1 + random() % (values.size() - 1);
    const Moments moments =
        merge(block_of(values, 0, middle).moments, block_of(values, middle, values.size()).moments);
    test::expect_moments(values, moments, 1e-12);
  }
}

TEST(BestPartition, IsTheOptimumWhenEveryBlockIsOneValue) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<double> values = random_sorted(1 + random() % 60, random);
    const std::size_t groups = 1 + random() % 8;
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < values.size(); ++i) blocks.push_back(block_of(values, i, i + 1));
    const auto partition = best_partition(blocks, all_positions(blocks.size(), groups));
    const OptimalGrouping optimum = optimal_grouping(values, groups);
    EXPECT_NEAR(partition.cost, optimum.cost, 1e-10 * optimum.cost);
    EXPECT_EQ(partition.max_excess, 0.0);
    ASSERT_EQ(partition.cuts.size(), groups + 1);
    EXPECT_EQ(partition.cuts.front(), 0U);
    EXPECT_EQ(partition.cuts.back(), values.size());
    EXPECT_TRUE(std::is_sorted(partition.cuts.begin(), partition.cuts.end()));
  }
}

// The promise that everything else rests on.
TEST(BestPartition, IsNoFurtherFromTheOptimumThanItSays) {
  std::mt19937_64 random(3);
  double tightest = 0.0;
  for (int trial = 0; trial < 4000; ++trial) {
    const std::vector<double> values = random_sorted(2 + random() % 80, random);
    const std::size_t groups = 1 + random() % 6;
    const Blocks input = random_blocks(values, random);
    const auto partition = best_partition(input.blocks, all_positions(input.blocks.size(), groups));
    const OptimalGrouping optimum = optimal_grouping(values, groups);
    const double excess = partition.cost - optimum.cost;
    const double rounding = 1e-9 * partition.cost;
    ASSERT_GE(excess, -rounding) << "trial " << trial;
    ASSERT_LE(excess, partition.max_excess + rounding) << "trial " << trial;
    if (partition.max_excess > 0.0) tightest = std::max(tightest, excess / partition.max_excess);
  }
  EXPECT_GT(tightest, 0.1) << "a bound this loose would not show a mistake in it";
}

TEST(BestPartition, HasEveryCutOfTheOptimumInItsWindow) {
  std::mt19937_64 random(4);
  std::size_t num_narrow = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::vector<double> values = random_sorted(10 + random() % 80, random);
    // Equal values would allow other cuts of the same cost.
    values.erase(std::unique(values.begin(), values.end()), values.end());
    const std::size_t groups = 2 + random() % 5;
    if (values.size() <= groups) continue;
    const Blocks input = random_blocks(values, random);
    const auto partition = best_partition(input.blocks, all_positions(input.blocks.size(), groups));
    const OptimalGrouping optimum = optimal_grouping(values, groups);
    for (std::size_t j = 1; j < groups; ++j) {
      const Window& window = partition.windows[j];
      ASSERT_GE(optimum.cuts[j], input.begins[window.first]) << "trial " << trial;
      ASSERT_LE(optimum.cuts[j], input.begins[window.last]) << "trial " << trial;
      if (window.last - window.first < input.blocks.size() / 2) ++num_narrow;
    }
  }
  EXPECT_GT(num_narrow, 1000U) << "windows this wide would not show a mistake in them";
}

TEST(BestPartition, KeepsItsCutsInsideTheGivenWindows) {
  std::vector<double> values(40);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < values.size(); ++i) blocks.push_back(block_of(values, i, i + 1));
  std::vector<Window> windows = all_positions(blocks.size(), 3);
  windows[1] = {.first = 2, .last = 3};
  windows[2] = {.first = 3, .last = 9};
  const auto partition = best_partition(blocks, windows);
  EXPECT_EQ(partition.cuts, (std::vector<std::size_t>{0, 3, 9, 40}));
}

}  // namespace
}  // namespace tamis::detail
