#include "base/threads.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tamis::detail {
namespace {

TEST(Parts, CoverAllItemsOnceAndBeginAtMultiplesOfTheStep) {
  for (const std::size_t allowed : {1U, 2U, 3U, 8U}) {
    const AllowThreads allow(allowed);
    for (const std::size_t count : {0U, 1U, 63U, 64U, 65U, 1000U, 4096U, 4097U}) {
      for (const std::size_t step : {1U, 64U}) {
        const Parts parts(count, step, 100);
        EXPECT_LE(parts.size(), allowed);
        std::vector<int> visits(count, 0);
        for (std::size_t part = 0; part < parts.size(); ++part) {
          EXPECT_EQ(parts.begin(part) % step, 0U);
          for (std::size_t i = parts.begin(part); i < parts.end(part); ++i) ++visits[i];
        }
        EXPECT_EQ(visits, std::vector<int>(count, 1));
      }
    }
  }
}

TEST(Parts, RunOnThreadsOfTheirOwnThatAreNotDividedAgain) {
  const AllowThreads allow(4);
  const Parts parts(4, 1, 1);
  std::vector<std::thread::id> threads(parts.size());
  std::vector<std::size_t> allowed(parts.size());
  parts.run([&](std::size_t part) {
    threads[part] = std::this_thread::get_id();
    allowed[part] = allowed_threads();
  });
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), 4U);
  EXPECT_EQ(allowed, std::vector<std::size_t>(4, 1));
  EXPECT_EQ(allowed_threads(), 4U);
}

TEST(Parts, OneThreadUnlessMoreAreAllowedAndWorthIt) {
  EXPECT_EQ(Parts(1'000'000, 1, 1).size(), 1U);
  const AllowThreads allow(8);
  EXPECT_EQ(Parts(299, 1, 100).size(), 2U);
  EXPECT_EQ(Parts(99, 1, 100).size(), 1U);
}

TEST(Parts, ThrowWhatTheFirstFailedPartHasThrown) {
  const AllowThreads allow(4);
  int done = 0;
  try {
    Parts(4, 1, 1).run([&](std::size_t part) {
      if (part >= 2) throw std::runtime_error("part " + std::to_string(part));
      if (part == 0) ++done;
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "part 2");
  }
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace tamis::detail
