#include "tamis/smallest_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace tamis {
namespace {

std::vector<float> random_vectors(std::size_t count, std::size_t dimension, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> part(0.1F, 1.0F);
  std::vector<float> vectors(count * dimension);
  for (float& value : vectors) value = part(random);
  return vectors;
}

// As a reader of the paper would write it.
Bitmap plain_greedy(const std::vector<float>& vectors, std::size_t dimension, std::size_t count) {
  const std::size_t n = vectors.size() / dimension;
  Bitmap chosen(n);
  for (std::size_t k = 0; k < count; ++k) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t best = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (chosen.test(i)) continue;
      Bitmap more = chosen;
      more.set(i);
      const double norm = sum_norm(vectors, dimension, more);
      if (norm < least) {
        least = norm;
        best = i;
      }
    }
    chosen.set(best);
  }
  return chosen;
}

TEST(SmallestSum, IsAtLeastAsGoodAsGreedyAndRandomSubsets) {
  std::mt19937_64 random(4);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::size_t n = 20 + random() % 60;
    const std::size_t dimension = 1 + random() % 12;
    const std::size_t count = 1 + random() % (n - 1);
    const auto vectors = random_vectors(n, dimension, seed);
    const Bitmap chosen = choose_smallest_sum(vectors, dimension, count, seed);
    ASSERT_EQ(chosen.count(), count);
    const double norm = sum_norm(vectors, dimension, chosen);
    EXPECT_LE(norm, sum_norm(vectors, dimension, plain_greedy(vectors, dimension, count)) + 1e-9);
    for (int repeat = 0; repeat < 50; ++repeat) {
      Bitmap other(n);
      while (other.count() < count) other.set(random() % n);
      EXPECT_LE(norm, sum_norm(vectors, dimension, other) + 1e-9);
    }
  }
}

TEST(SmallestSum, FindsTheBestOfFewSamples) {
  // 1 + 2 - 3 = 0 is the only sum of three that vanishes.
  const std::vector<float> vectors = {1.0F, 2.0F, 8.0F, -3.0F, 16.0F};
  const Bitmap chosen = choose_smallest_sum(vectors, 1, 3, 0);
  EXPECT_EQ(sum_norm(vectors, 1, chosen), 0.0);
}

TEST(SmallestSum, TakesNoneAndAll) {
  const auto vectors = random_vectors(7, 3, 1);
  EXPECT_EQ(choose_smallest_sum(vectors, 3, 0, 0).count(), 0U);
  EXPECT_EQ(choose_smallest_sum(vectors, 3, 7, 0).count(), 7U);
}

TEST(SmallestSum, RefusesSizesThatDoNotFit) {
  const std::vector<float> vectors(6);
  EXPECT_THROW(choose_smallest_sum(vectors, 4, 1, 0), std::invalid_argument);
  EXPECT_THROW(choose_smallest_sum(vectors, 2, 4, 0), std::invalid_argument);
  EXPECT_THROW(choose_smallest_sum(vectors, 0, 0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace tamis
