#include "base/gradient_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tamis::detail {
namespace {

template <typename T>
class GradientRows : public testing::Test {
 protected:
  std::vector<T> make_gradient(std::size_t num_rows, std::size_t num_columns) {
    std::normal_distribution<T> normal(T{0}, T{1});
    std::vector<T> gradient(num_rows * num_columns);
    for (T& value : gradient) value = normal(random_);
    return gradient;
  }

 private:
  std::mt19937_64 random_{3};
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GradientRows, Types);

TYPED_TEST(GradientRows, HaveTheNormsOfAPlainLoopWhateverTheirLength) {
  for (const std::size_t num_columns : {1U, 10U, 32U, 33U, 100U, 1000U, 100000U}) {
    const auto gradient = this->make_gradient(5, num_columns);
    std::vector<float> norms(5);
    norms_of_rows(gradient.data(), num_columns, 2, norms);
    std::vector<float> magnitudes(5);
    norms_of_rows(gradient.data(), num_columns, 1, magnitudes);
    for (std::size_t row = 0; row < norms.size(); ++row) {
      long double sum = 0;
      long double magnitude = 0;
      for (std::size_t k = 0; k < num_columns; ++k) {
        const long double value = gradient[row * num_columns + k];
        sum += value * value;
        magnitude += std::abs(value);
      }
      EXPECT_NEAR(norms[row] / static_cast<double>(std::sqrt(sum)), 1.0, 1e-6) << num_columns;
      EXPECT_NEAR(magnitudes[row] / static_cast<double>(magnitude), 1.0, 3e-7) << num_columns;
    }
  }
}

TYPED_TEST(GradientRows, AreWeightedOneByOneAndTheirNormsAreThoseBefore) {
  const std::vector<double> factors = {0.5, 1.0, 4.0 / 3.0};
  for (const std::size_t num_columns : {10U, 100U, 5000U}) {
    const auto gradient = this->make_gradient(3, num_columns);
    std::vector<TypeParam> weighted(gradient.size());
    std::vector<float> norms(3);
    std::vector<float> expected(3);
    for (const int order : {1, 2}) {
      weigh_rows(gradient.data(), num_columns, order, factors, weighted.data(), norms);
      norms_of_rows(gradient.data(), num_columns, order, expected);
      EXPECT_EQ(norms, expected);
    }
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      EXPECT_EQ(weighted[k], gradient[k] * static_cast<TypeParam>(factors[k / num_columns]));
    }
  }
}

TYPED_TEST(GradientRows, ThatAreNotFiniteHaveNoFiniteNorm) {
  auto gradient = this->make_gradient(3, 40);
  gradient[40] = std::numeric_limits<TypeParam>::quiet_NaN();
  gradient[119] = -std::numeric_limits<TypeParam>::infinity();
  std::vector<float> norms(3);
  for (const int order : {1, 2}) {
    norms_of_rows(gradient.data(), 40, order, norms);
    EXPECT_TRUE(std::isfinite(norms[0]));
    EXPECT_TRUE(std::isnan(norms[1]));
    EXPECT_TRUE(std::isinf(norms[2]));
  }
}

TEST(GradientRowsOfFloats, KeepNormsWhoseSquaresNoFloatCanHold) {
  const std::vector<float> gradient = {3e-30F, 4e-30F, 3e30F, 4e30F};
  std::vector<float> norms(2);
  norms_of_rows(gradient.data(), 2, 2, norms);
  EXPECT_FLOAT_EQ(norms[0], 5e-30F);
  EXPECT_FLOAT_EQ(norms[1], 5e30F);
}

}  // namespace
}  // namespace tamis::detail
