// Uniformity of selection and order. Every statistical test has a false-alarm rate of 1e-6.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/random/random.h"
#include "base/random/shuffle.h"
#include "base/random/subset.h"
#include "support/chi_square.h"
#include "tamis/bitmap.h"

namespace tamis::detail {
namespace {

using test::chi_square_limit;
using test::chi_square_uniform;

TEST(RandomStream, IsTheSameOnEveryMachine) {
  RandomStream random(1, 2, Purpose::order);
  // Any change to these numbers changes every plan that users have made.
  const std::array<std::uint64_t, 3> expected = {0xca0db16da3e44647U, 0x37ab103fe7f9e210U,
                                                 0x7039f6111296351fU};
  for (const std::uint64_t value : expected) EXPECT_EQ(random.next(), value);
}

TEST(RandomStream, DiffersInEveryPartOfItsKey) {
  const auto first = [](std::uint64_t seed, std::uint64_t epoch, Purpose purpose) {
    return RandomStream(seed, epoch, purpose).next();
  };
  const auto base = first(1, 2, Purpose::order);
  EXPECT_NE(base, first(2, 2, Purpose::order));
  EXPECT_NE(base, first(1, 3, Purpose::order));
  EXPECT_NE(base, first(2, 1, Purpose::order));
  EXPECT_NE(base, first(1, 2, Purpose::selection));
}

TEST(RandomStream, SkippedNumbersAreAsIfTheyHadBeenDrawn) {
  for (const std::uint64_t before : {0U, 1U, 255U, 256U, 300U}) {
    for (const std::uint64_t count : {0U, 1U, 8U, 255U, 256U, 257U, 512U, 1000U, 77'777U}) {
      RandomStream drawn(1, 2, Purpose::order);
      for (std::uint64_t k = 0; k < before; ++k) drawn.next();
      RandomStream skipped = drawn;
      for (std::uint64_t k = 0; k < count; ++k) drawn.next();
      skipped.skip(count);
      EXPECT_EQ(skipped.num_blocks(), drawn.num_blocks()) << before << " " << count;
      for (int k = 0; k < 300; ++k) ASSERT_EQ(skipped.next(), drawn.next()) << count;
    }
  }
}

// Far beyond what can be drawn one by one: two ways to the same place.
TEST(RandomStream, SkipsAddUp) {
  RandomStream once(1, 2, Purpose::order);
  RandomStream twice = once;
  constexpr std::uint64_t kFar = 0x123456789abcdefU;
  once.skip(kFar + 12345);
  twice.skip(12345);
  twice.skip(kFar);
  for (int k = 0; k < 300; ++k) ASSERT_EQ(once.next(), twice.next());
}

TEST(RandomStream, BoundedNumbersAreUniform) {
  RandomStream random(5, 0, Purpose::selection);
  for (const std::uint64_t bound : {2U, 3U, 7U, 100U}) {
    std::vector<std::size_t> counts(bound);
    for (int k = 0; k < 200000; ++k) ++counts[random.below(bound)];
    EXPECT_LT(chi_square_uniform(counts), chi_square_limit(bound - 1)) << bound;
  }
}

// Large bounds, where a multiplication without rejection would be visibly biased.
TEST(RandomStream, LargeBoundsAreUniform) {
  RandomStream random(6, 0, Purpose::selection);
  const std::uint64_t bound = 3 * (std::uint64_t{1} << 62U);
  std::vector<std::size_t> counts(3);
  for (int k = 0; k < 200000; ++k) ++counts[random.below(bound) >> 62U];
  EXPECT_LT(chi_square_uniform(counts), chi_square_limit(2));
}

TEST(Choose, HasExactlyTheSizeAskedFor) {
  RandomStream random(1, 0, Purpose::selection);
  for (std::size_t size = 1; size < 700; size += 13) {
    for (std::size_t count = 0; count <= size; count += 1 + size / 9) {
      EXPECT_EQ(choose(size, count, random).count(), count);
    }
  }
  for (const double share : {0.001, 0.1, 0.5, 0.7, 0.999}) {
    const auto count = static_cast<std::size_t>(share * 100000);
    EXPECT_EQ(choose(100000, count, random).count(), count);
  }
}

TEST(Choose, TakesCandidatesOnly) {
  RandomStream random(2, 0, Purpose::selection);
  Bitmap candidates = choose(5000, 2000, random);
  for (const std::size_t count : {10U, 500U, 1000U, 1990U, 2000U}) {
    Bitmap chosen = choose(candidates, 2000, count, random);
    EXPECT_EQ(chosen.count(), count);
    chosen -= candidates;
    EXPECT_EQ(chosen.count(), 0U);
  }
}

// All 20 subsets of three out of six.
TEST(Choose, SmallSubsetsAreUniform) {
  std::map<std::uint64_t, std::size_t> counts;
  RandomStream random(3, 0, Purpose::selection);
  for (int k = 0; k < 200000; ++k) ++counts[choose(6, 3, random).words()[0]];
  ASSERT_EQ(counts.size(), 20U);
  std::vector<std::size_t> values;
  for (const auto& [subset, count] : counts) values.push_back(count);
  EXPECT_LT(chi_square_uniform(values), chi_square_limit(19));
}

// The path of coin flips and corrections, for shares that a coin can and cannot hold exactly. A
// pair of positions is together in the subset with probability count (count - 1) / (size (size -
// 1)).
TEST(Choose, LargeSubsetsAreUniformInSinglesAndPairs) {
  constexpr std::size_t kSize = 640;
  constexpr int kTrials = 4000;
  for (const std::size_t count : {320U, 213U, 500U}) {
    RandomStream random(4, count, Purpose::selection);
    std::vector<std::size_t> singles(kSize);
    std::vector<std::size_t> pairs(kSize);
    for (int k = 0; k < kTrials; ++k) {
      const Bitmap chosen = choose(kSize, count, random);
      for (std::size_t i = 0; i < kSize; ++i) {
        singles[i] += static_cast<std::size_t>(chosen.test(i));
        pairs[i] += static_cast<std::size_t>(chosen.test(i) && chosen.test((i + 17) % kSize));
      }
    }
    // Counts within one subset are negatively correlated, which makes the statistic smaller than a
    // chi-square by the share that is left out; so scale it back.
    const double left_out = 1.0 - static_cast<double>(count) / kSize;
    EXPECT_LT(chi_square_uniform(singles) / left_out, chi_square_limit(kSize - 1)) << count;
    const double mean_pairs = std::accumulate(pairs.begin(), pairs.end(), 0.0) / kSize;
    const double expected = kTrials * static_cast<double>(count) * static_cast<double>(count - 1) /
                            (static_cast<double>(kSize) * (kSize - 1));
    EXPECT_NEAR(mean_pairs, expected, 0.02 * expected);
  }
}

std::vector<std::uint32_t> shuffled(std::size_t size, std::uint64_t seed, std::uint64_t epoch) {
  const Bitmap all(size, true);
  const auto order = shuffled_positions(all, size, seed, epoch);
  return {order.begin(), order.end()};
}

TEST(Shuffle, IsAPermutationOfTheKept) {
  RandomStream random(1, 0, Purpose::selection);
  for (const std::size_t size : {1U, 2U, 63U, 64U, 65U, 511U, 513U, 1000U, 100000U}) {
    const Bitmap kept = choose(size, size - size / 3, random);
    const auto order = shuffled_positions(kept, kept.count(), 1, 2);
    std::vector<std::uint32_t> sorted(order.begin(), order.end());
    std::sort(sorted.begin(), sorted.end());
    EXPECT_TRUE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
    for (const std::uint32_t i : sorted) EXPECT_TRUE(kept.test(i));
    EXPECT_EQ(sorted.size(), kept.count());
  }
}

// All 120 orders of five elements.
TEST(Shuffle, SmallOrdersAreUniform) {
  std::map<std::vector<std::uint32_t>, std::size_t> counts;
  for (std::uint64_t seed = 0; seed < 120000; ++seed) ++counts[shuffled(5, seed, 0)];
  ASSERT_EQ(counts.size(), 120U);
  std::vector<std::size_t> values;
  for (const auto& [order, count] : counts) values.push_back(count);
  EXPECT_LT(chi_square_uniform(values), chi_square_limit(119));
}

// The vectorised steps: where each element ends, in 16 x 16 blocks of start and end.
TEST(Shuffle, EveryElementEndsAnywhere) {
  constexpr std::size_t kSize = 4096;
  constexpr std::size_t kBlocks = 16;
  std::vector<std::size_t> counts(kBlocks * kBlocks);
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    const auto order = shuffled(kSize, 9, epoch);
    for (std::size_t k = 0; k < kSize; ++k) {
      ++counts[order[k] * kBlocks / kSize * kBlocks + k * kBlocks / kSize];
    }
  }
  EXPECT_LT(chi_square_uniform(counts), chi_square_limit((kBlocks - 1) * (kBlocks - 1)));
}

// Neighbours in the data set must not stay neighbours: the distance between the new places of i and
// i + 1 is that of two independent draws.
TEST(Shuffle, NeighboursAreIndependent) {
  constexpr std::size_t kSize = 20000;
  constexpr std::size_t kClasses = 20;
  std::vector<std::size_t> counts(kClasses);
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const auto order = shuffled(kSize, 10, epoch);
    std::vector<std::size_t> place(kSize);
    for (std::size_t k = 0; k < kSize; ++k) place[order[k]] = k;
    for (std::size_t i = 0; i + 1 < kSize; i += 2) {
      ++counts[(place[i + 1] + kSize - place[i]) % kSize * kClasses / kSize];
    }
  }
  EXPECT_LT(chi_square_uniform(counts), chi_square_limit(kClasses - 1));
}

// The path through buckets, which starts at three million elements.
TEST(Shuffle, LargeOrdersAreUniformPermutations) {
  constexpr std::size_t kSize = 4'000'000;
  constexpr std::size_t kBlocks = 64;
  const auto order = shuffled(kSize, 11, 3);
  std::vector<bool> seen(kSize, false);
  std::vector<std::size_t> counts(kBlocks * kBlocks);
  std::vector<std::size_t> parity(4);
  for (std::size_t k = 0; k < kSize; ++k) {
    ASSERT_LT(order[k], kSize);
    ASSERT_FALSE(seen[order[k]]);
    seen[order[k]] = true;
    ++counts[order[k] / (kSize / kBlocks) * kBlocks + k / (kSize / kBlocks)];
    ++parity[(order[k] & 1U) * 2 + (k & 1U)];
  }
  EXPECT_LT(chi_square_uniform(counts), chi_square_limit((kBlocks - 1) * (kBlocks - 1)));
  EXPECT_LT(chi_square_uniform(parity), chi_square_limit(1));
}

TEST(Shuffle, DependsOnSeedAndEpoch) {
  EXPECT_EQ(shuffled(1000, 1, 1), shuffled(1000, 1, 1));
  EXPECT_NE(shuffled(1000, 1, 1), shuffled(1000, 1, 2));
  EXPECT_NE(shuffled(1000, 1, 1), shuffled(1000, 2, 1));
}

}  // namespace
}  // namespace tamis::detail
