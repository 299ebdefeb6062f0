#include "base/gradient_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/simd/kernels.h"

namespace tamis::detail {

namespace {

constexpr std::size_t kLanes = 32;
// Floats are summed up this far; what they round off stays below a millionth of the sum.
constexpr std::size_t kBlock = 64 * kLanes;

template <typename T>
double sum_squares(const T* row, std::size_t num_columns) {
  double sum = 0.0;
  for (std::size_t i = 0; i < num_columns; ++i) {
    sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  }
  return sum;
}

// Walks over a row block by block; `use` adds the squares of a part of it to the lanes.
template <typename Use>
float norm_of(const float* row, std::size_t num_columns, const Use& use) {
  const std::size_t whole = num_columns / kLanes * kLanes;
  double sum = sum_squares(row + whole, num_columns - whole);
  for (std::size_t begin = 0; begin < whole; begin += kBlock) {
    alignas(32) std::array<float, kLanes> lanes{};
    use(begin, std::min(kBlock, whole - begin), lanes.data());
    for (const float lane : lanes) sum += static_cast<double>(lane);
  }
  // Outside, a square may have vanished, or may not have fitted a float.
  constexpr double kLeast = 1e-30;
  constexpr double kGreatest = 1e30;
  if (!(sum > kLeast && sum < kGreatest)) sum = sum_squares(row, num_columns);
  return static_cast<float>(std::sqrt(sum));
}

float norm_of_row(const float* row, std::size_t num_columns) {
  const Kernels& with = kernels();
  return norm_of(row, num_columns, [&](std::size_t begin, std::size_t count, float* lanes) {
    with.add_squares(row + begin, count, lanes);
  });
}

float norm_of_row(const double* row, std::size_t num_columns) {
  return static_cast<float>(std::sqrt(sum_squares(row, num_columns)));
}

float weigh_row(const float* row, std::size_t num_columns, float factor, float* weighted) {
  const Kernels& with = kernels();
  for (std::size_t i = num_columns / kLanes * kLanes; i < num_columns; ++i) {
    weighted[i] = row[i] * factor;
  }
  return norm_of(row, num_columns, [&](std::size_t begin, std::size_t count, float* lanes) {
    with.scale(row + begin, count, factor, weighted + begin, lanes);
  });
}

float weigh_row(const double* row, std::size_t num_columns, double factor, double* weighted) {
  for (std::size_t i = 0; i < num_columns; ++i) weighted[i] = row[i] * factor;
  return norm_of_row(row, num_columns);
}

}  // namespace

template <typename T>
void norms_of_rows(const T* gradient, std::size_t num_columns, std::span<float> norms) {
  for (float& norm : norms) {
    norm = norm_of_row(gradient, num_columns);
    gradient += num_columns;
  }
}

template <typename T>
void weigh_rows(const T* gradient, std::size_t num_columns, std::span<const double> factors,
                T* weighted, std::span<float> norms) {
  for (std::size_t row = 0; row < norms.size(); ++row) {
    norms[row] = weigh_row(gradient, num_columns, static_cast<T>(factors[row]), weighted);
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
