#include "base/gradient_rows.h"

#include <array>
#include <cmath>

#include "base/simd/kernels.h"

namespace tamis::detail {

namespace {

constexpr std::size_t kLanes = 16;

void add_squares(const Kernels& use, const float* row, std::size_t count, double* sums) {
  use.add_squares(row, count, sums);
}

void add_squares(const Kernels&, const double* row, std::size_t count, double* sums) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += row[i + lane] * row[i + lane];
  }
}

template <typename T>
float norm_of(const Kernels& use, const T* row, std::size_t num_columns) {
  std::array<double, kLanes> sums{};
  const std::size_t whole = num_columns / kLanes * kLanes;
  add_squares(use, row, whole, sums.data());
  for (std::size_t i = whole; i < num_columns; ++i) {
    const auto value = static_cast<double>(row[i]);
    sums[i % kLanes] += value * value;
  }
  double sum = 0.0;
  for (const double one : sums) sum += one;
  return static_cast<float>(std::sqrt(sum));
}

}  // namespace

template <typename T>
void norms_of_rows(const T* gradient, std::size_t num_columns, std::span<float> norms) {
  const Kernels& use = kernels();
  for (float& norm : norms) {
    norm = norm_of(use, gradient, num_columns);
    gradient += num_columns;
  }
}

// A row at a time, which is still in the cache when it is weighted.
template <typename T>
void weigh_rows(const T* gradient, std::size_t num_columns, std::span<const double> factors,
                T* weighted, std::span<float> norms) {
  const Kernels& use = kernels();
  for (std::size_t row = 0; row < norms.size(); ++row) {
    norms[row] = norm_of(use, gradient, num_columns);
    const T factor = static_cast<T>(factors[row]);
    for (std::size_t i = 0; i < num_columns; ++i) weighted[i] = gradient[i] * factor;
    gradient += num_columns;
    weighted += num_columns;
  }
}

template void norms_of_rows(const float*, std::size_t, std::span<float>);
template void norms_of_rows(const double*, std::size_t, std::span<float>);
template void weigh_rows(const float*, std::size_t, std::span<const double>, float*,
                         std::span<float>);
template void weigh_rows(const double*, std::size_t, std::span<const double>, double*,
                         std::span<float>);

}  // namespace tamis::detail
