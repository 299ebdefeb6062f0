#include "core/policies/part_subset.h"

#include <gtest/gtest.h>

#include <mutex>
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
    const ClassDraw draw{.num_left = num_samples, .num_wanted = count};
    const Bitmap part =
        choose_part(Bitmap(static_cast<std::size_t>(end - begin), true), {}, std::span(&draw, 1),
                    SampleKeys(seed, 3, Purpose::selection, first + begin), *communicator);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part.test(i)) chosen[r].samples.push_back(first + begin + i);
    }
    chosen[r].bytes = communicator->bytes_sent() + communicator->bytes_received();
  });
  for (std::size_t r = 1; r < num_ranks; ++r) {
    chosen[0].samples.insert(chosen[0].samples.end(), chosen[r].samples.begin(),
                             chosen[r].samples.end());
  }
  return chosen[0];
}

TEST(ChoosePart, ChoosesTheExactNumberOfAllRanks) {
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

// Class c has 1, 10, 100, ... samples, of which none, some and all are wanted.
TEST(ChoosePart, ChoosesTheExactNumberOfEveryClassWhateverTheRanks) {
  constexpr std::size_t kSamples = 11'111;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::size_t place = i * 7919 % kSamples;
    labels.push_back(place < 1 ? 0 : place < 11 ? 1 : place < 111 ? 2 : place < 1111 ? 3 : 4);
  }
  for (const std::vector<ClassDraw>& draws :
       {std::vector<ClassDraw>{{1, 1}, {10, 0}, {100, 7}, {1000, 999}, {10'000, 5'000}},
        std::vector<ClassDraw>{{1, 0}, {10, 10}, {100, 100}, {1000, 1}, {10'000, 0}}}) {
    std::vector<Bitmap> results;
    for (const std::size_t num_ranks : {1U, 2U, 3U, 5U}) {
      Bitmap whole(kSamples);
      std::mutex mutex;
      run_ranks(num_ranks, [&](const auto& communicator) {
        const std::size_t begin = kSamples * communicator->rank() / num_ranks;
        const std::size_t end = kSamples * (communicator->rank() + 1) / num_ranks;
        const Bitmap part =
            choose_part(Bitmap(end - begin, true), std::span(labels).subspan(begin, end - begin),
                        draws, SampleKeys(4, 2, Purpose::class_floor, begin), *communicator);
        const std::lock_guard lock(mutex);
        for (std::size_t i = 0; i < part.size(); ++i) {
          if (part.test(i)) whole.set(begin + i);
        }
      });
      std::vector<std::uint64_t> counts(draws.size(), 0);
      for (std::size_t i = 0; i < kSamples; ++i) {
        counts[static_cast<std::size_t>(labels[i])] += whole.test(i) ? 1 : 0;
      }
      for (std::size_t c = 0; c < draws.size(); ++c) EXPECT_EQ(counts[c], draws[c].num_wanted);
      results.push_back(std::move(whole));
      EXPECT_EQ(results.back(), results.front()) << num_ranks;
    }
  }
}

}  // namespace
}  // namespace tamis::detail
