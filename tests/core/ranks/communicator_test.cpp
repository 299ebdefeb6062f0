#include "tamis/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "support/ranks.h"

namespace tamis {
namespace {

using test::errors_of_ranks;
using test::run_ranks;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Communicator, ReducesIntegersOfAllRanks) {
  run_ranks(3, [](const auto& communicator) {
    const auto r = static_cast<std::int64_t>(communicator->rank());
    std::array<std::int64_t, 2> sums = {r, std::int64_t{1} << 62U};
    communicator->all_reduce(sums);
    EXPECT_THAT(sums, ElementsAre(3, -(std::int64_t{1} << 62U)));  // wraps around
    std::array<std::int64_t, 1> least = {-r};
    communicator->all_reduce(least, Reduction::minimum);
    EXPECT_THAT(least, ElementsAre(-2));
    std::array<std::int64_t, 1> greatest = {-r};
    communicator->all_reduce(greatest, Reduction::maximum);
    EXPECT_THAT(greatest, ElementsAre(0));
  });
}

TEST(Communicator, AddsDoublesInTheOrderOfTheRanks) {
  run_ranks(4, [](const auto& communicator) {
    constexpr std::array<double, 4> kTerms = {1e16, 1.0, -1e16, 1.0};
    std::array<double, 1> sum = {kTerms[communicator->rank()]};
    communicator->all_reduce(sum);
    EXPECT_EQ(sum[0], ((1e16 + 1.0) - 1e16) + 1.0);
  });
}

TEST(Communicator, GathersBytesOfDifferentLengths) {
  run_ranks(3, [](const auto& communicator) {
    const std::vector<std::byte> own(communicator->rank(), std::byte{7});
    const auto all = communicator->all_gather(own);
    ASSERT_EQ(all.size(), 3U);
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(all[r], std::vector<std::byte>(r, std::byte{7}));
    }
  });
}

TEST(Communicator, CountsTheBytesOfARank) {
  run_ranks(3, [](const auto& communicator) {
    std::array<std::int64_t, 5> numbers{};
    communicator->all_reduce(numbers);
    communicator->all_gather(std::vector<std::byte>(10 * communicator->rank()));
    EXPECT_EQ(communicator->bytes_sent(), 40 + 10 * communicator->rank());
    EXPECT_EQ(communicator->bytes_received(), 40 + 30 - 10 * communicator->rank());
  });
}

TEST(Communicator, OfOneProcessSendsNothing) {
  const auto communicator = make_single_process();
  std::array<std::int64_t, 2> numbers = {3, 4};
  communicator->all_reduce(numbers);
  EXPECT_THAT(numbers, ElementsAre(3, 4));
  EXPECT_EQ(communicator->all_gather(std::vector<std::byte>(5)).at(0).size(), 5U);
  EXPECT_EQ(communicator->bytes_sent() + communicator->bytes_received(), 0U);
}

TEST(Communicator, NamesTheRankThatDoesNotCome) {
  const auto errors = errors_of_ranks(
      3,
      [](const auto& communicator) {
        std::array<std::int64_t, 1> number = {1};
        if (communicator->rank() != 1) communicator->all_reduce(number);
      },
      std::chrono::milliseconds(50));
  EXPECT_THAT(errors[0], HasSubstr("rank 1 did not answer within 50 ms"));
  EXPECT_THAT(errors[2], HasSubstr("rank 1 did not answer within 50 ms"));
}

}  // namespace
}  // namespace tamis
