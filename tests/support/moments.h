// Moments as their definition says, in long double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/grouping/interval_partition.h"

namespace tamis::test {

template <typename T>
void expect_moments(const std::vector<T>& values, const detail::Moments& moments,
                    double tolerance) {
  long double mean = 0.0L;
  for (const T value : values) mean += value;
  mean /= static_cast<long double>(values.size());
  long double squares = 0.0L;
  for (const T value : values) squares += (value - mean) * (value - mean);
  EXPECT_EQ(moments.count, static_cast<double>(values.size()));
  EXPECT_NEAR(moments.mean(), static_cast<double>(mean), 1e-15 * std::fabs(moments.mean()));
  EXPECT_NEAR(moments.squares, static_cast<double>(squares), tolerance * moments.squares);
}

}  // namespace tamis::test
