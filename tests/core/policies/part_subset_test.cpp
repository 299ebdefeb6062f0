#include "core/policies/part_subset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <vector>

#include "support/ranks.h"

namespace tamis::detail {
namespace {

using test::run_ranks;

// The chosen samples of all ranks, by their index in the whole.
struct Chosen {
  std::vector<std::uint64_t> samples;
  std::uint64_t bytes = 0;  // sent and received by one rank
};

Chosen choose(std::size_t num_ranks, std::uint64_t num_samples, std::uint64_t count,
              std::uint64_t seed, std::uint64_t first = 0) {
  std::vector<Chosen> chosen(num_ranks);
  run_ranks(num_ranks, [&](const auto& communicator) {
    const std::size_t r = communicator->rank();
    const std::uint64_t begin = num_samples * r / num_ranks;
    const std::uint64_t end = num_samples * (r + 1) / num_ranks;
    const PartInput input{.local = {.scores = {}, .epoch = 3, .seed = seed},
                          .first = first + begin,
                          .num_samples = num_samples,
                          .communicator = communicator.get()};
    const Bitmap part = choose_part(Bitmap(static_cast<std::size_t>(end - begin), true),
                                    num_samples, count, input, Purpose::selection);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part.test(i)) chosen[r].samples.push_back(input.first + i);
    }
    chosen[r].bytes = communicator->bytes_sent() + communicator->bytes_received();
  });
  for (std::size_t r = 1; r < num_ranks; ++r) {
    chosen[0].samples.insert(chosen[0].samples.end(), chosen[r].samples.begin(),
                             chosen[r].samples.end());
  }
  return chosen[0];
}

TEST(ChoosePart, ChoosesExactlySoManyOfAllRanks) {
  for (const std::uint64_t n : {3U, 7U, 1000U, 100'003U}) {
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, n / 3, n / 2, n - 1, n}) {
      EXPECT_EQ(choose(3, n, count, 5).samples.size(), count) << n;
    }
  }
}

TEST(ChoosePart, DoesNotDependOnTheNumberOfRanks) {
  const auto one = choose(1, 50'000, 20'001, 9).samples;
  for (const std::size_t num_ranks : {2U, 3U, 4U, 16U}) {
    EXPECT_EQ(choose(num_ranks, 50'000, 20'001, 9).samples, one) << num_ranks;
  }
}

TEST(ChoosePart, IsExactFarAbove32BitIndices) {
  constexpr std::uint64_t kFirst = 9'999'990'000;
  const auto chosen = choose(2, 10'000, 5'000, 1, kFirst).samples;
  EXPECT_EQ(chosen.size(), 5'000U);
  EXPECT_GE(chosen.front(), kFirst);
  EXPECT_EQ(choose(4, 10'000, 5'000, 1, kFirst).samples, chosen);
}

TEST(ChoosePart, ChoosesEverySampleEquallyOften) {
  constexpr std::size_t kSamples = 50;
  constexpr std::uint64_t kRounds = 4000;
  std::vector<double> counts(kSamples, 0.0);
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    for (const std::uint64_t sample : choose(1, kSamples, 20, seed).samples) ++counts[sample];
  }
  double chi_square = 0.0;
  const double expected = kRounds * 20.0 / kSamples;
  for (const double count : counts)
    chi_square += (count - expected) * (count - expected) / expected;
  // 49 degrees of freedom, less negative correlation: above 95 once in 10^4 runs.
  EXPECT_LT(chi_square, 95.0);
}

TEST(ChoosePart, ExchangesLittle) { EXPECT_LE(choose(2, 2'000'000, 900'000, 4).bytes, 3000U); }

TEST(HighestPart, IsTheHighestOfAllRanks) {
  std::vector<float> scores(3'000);
  std::mt19937 random(3);
  for (float& score : scores) score = static_cast<float>(random() % 100) - 50.0F;
  std::vector<float> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (const std::size_t num_ranks : {1U, 3U}) {
    std::vector<float> highest;
    std::mutex mutex;
    run_ranks(num_ranks, [&](const auto& communicator) {
      const std::size_t size = scores.size() / num_ranks;
      const std::size_t begin = communicator->rank() * size;
      const PartInput input{
          .local = {.scores = std::span<const float>(scores).subspan(begin, size)},
          .first = begin,
          .num_samples = scores.size(),
          .communicator = communicator.get()};
      const Bitmap part = highest_part(777, input, Purpose::selection);
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < size; ++i) {
        if (part.test(i)) highest.push_back(scores[begin + i]);
      }
    });
    std::sort(highest.begin(), highest.end(), std::greater<>());
    EXPECT_EQ(highest, std::vector<float>(sorted.begin(), sorted.begin() + 777));
  }
}

}  // namespace
}  // namespace tamis::detail
