#include "tamis/array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tamis {
namespace {

constexpr std::size_t kLarge = std::size_t{6} << 20U;  // bytes; large blocks are kept for reuse

// With sanitizers every block is fresh.
#ifndef TAMIS_SANITIZED
TEST(Array, LargeBlocksAreUsedAgainWhileAnotherIsInUse) {
  const Array<std::uint8_t> other(kLarge);
  const void* place = nullptr;
  {
    const Array<std::uint8_t> first(kLarge);
    place = first.data();
  }
  const Array<std::uint8_t> somewhat_smaller(kLarge / 2);
  EXPECT_EQ(somewhat_smaller.data(), place);
  const Array<std::uint8_t> not_the_same_twice(kLarge / 2);
  EXPECT_NE(not_the_same_twice.data(), place);
}

TEST(Array, ASmallBlockDoesNotDriveOutALargeOne) {
  const Array<std::uint8_t> scores(4 * kLarge);
  const void* place = nullptr;
  {
    const Array<std::uint8_t> order(4 * kLarge);
    place = order.data();
  }
  const Array<std::uint8_t> bitmap(4 * kLarge / 9);  // too small for the order's block
  const Array<std::uint8_t> next_order(4 * kLarge);
  EXPECT_EQ(next_order.data(), place);
}
#endif

TEST(Array, BlocksInUseNeverOverlap) {
  std::mt19937 random(1);
  std::vector<Array<std::uint8_t>> arrays;
  std::vector<std::uint8_t> marks;
  for (int step = 0; step < 100; ++step) {
    if (arrays.size() < 6 && random() % 3 != 0) {
      const std::size_t size = 1 + random() % kLarge;
      marks.push_back(static_cast<std::uint8_t>(random()));
      arrays.emplace_back(size, marks.back());
    } else if (!arrays.empty()) {
      const auto k = static_cast<std::ptrdiff_t>(random() % arrays.size());
      arrays.erase(arrays.begin() + k);
      marks.erase(marks.begin() + k);
    }
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      const auto* const wrong = std::find_if(arrays[k].begin(), arrays[k].end(),
                                             [&](std::uint8_t byte) { return byte != marks[k]; });
      ASSERT_EQ(wrong, arrays[k].end()) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace tamis
