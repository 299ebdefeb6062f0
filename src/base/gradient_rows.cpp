#include "base/gradient_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/simd/kernels.h"

namespace tamis::detail {

namespace {

constexpr std::size_t kLanes = 32;
// Floats are summed up this far; what they round off stays below a millionth of the sum of squares,
// and below a rounding of one float for magnitudes, whose differences count.
constexpr std::size_t kBlock = 64 * kLanes;
constexpr std::size_t kShortBlock = 4 * kLanes;

template <typename T>
double sum_squares(const T* row, std::size_t num_columns) {
  double sum = 0.0;
  for (std::size_t i = 0; i < num_columns; ++i) {
    sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  }
  return sum;
}

template <typename T>
double sum_magnitudes(const T* row, std::size_t num_columns) {
  double sum = 0.0;
  for (std::size_t i = 0; i < num_columns; ++i) sum += static_cast<double>(std::abs(row[i]));
  return sum;
}

// Walks over the first `whole` entries of a row block by block; `use` adds to the lanes what there
// is to add of a part of it.
template <typename Use>
double sum_blocks(std::size_t whole, std::size_t block, const Use& use) {
  double sum = 0.0;
  for (std::size_t begin = 0; begin < whole; begin += block) {
    alignas(32) std::array<float, kLanes> lanes{};
    use(begin, std::min(block, whole - begin), lanes.data());
    for (const float lane : lanes) sum += static_cast<double>(lane);
  }
  return sum;
}

// The Euclidean norm; `use` adds squares.
template <typename Use>
float norm_of(const float* row, std::size_t num_columns, const Use& use) {
  const std::size_t whole = num_columns / kLanes * kLanes;
  double sum = sum_squares(row + whole, num_columns - whole) + sum_blocks(whole, kBlock, use);
  // Outside, a square may have vanished, or may not have fitted a float.
  constexpr double kLeast = 1e-30;
  constexpr double kGreatest = 1e30;
  if (!(sum > kLeast && sum < kGreatest)) sum = sum_squares(row, num_columns);
  return static_cast<float>(std::sqrt(sum));
}

float magnitude_of_row(const float* row, std::size_t num_columns) {
  const std::size_t whole = num_columns / kLanes * kLanes;
  const Kernels& with = kernels();
  const double blocks =
      sum_blocks(whole, kShortBlock, [&](std::size_t begin, std::size_t count, float* lanes) {
        with.add_magnitudes(row + begin, count, lanes);
      });
  return static_cast<float>(blocks + sum_magnitudes(row + whole, num_columns - whole));
}

float magnitude_of_row(const double* row, std::size_t num_columns) {
  return static_cast<float>(sum_magnitudes(row, num_columns));
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
void norms_of_rows(const T* gradient, std::size_t num_columns, int order, std::span<float> norms) {
  for (float& norm : norms) {
    norm =
        order == 1 ? magnitude_of_row(gradient, num_columns) : norm_of_row(gradient, num_columns);
    gradient += num_columns;
  }
}

template <typename T>
void weigh_rows(const T* gradient, std::size_t num_columns, int order,
                std::span<const double> factors, T* weighted, std::span<float> norms) {
  for (std::size_t row = 0; row < norms.size(); ++row) {
    norms[row] = weigh_row(gradient, num_columns, static_cast<T>(factors[row]), weighted);
    // The row is in the cache.
    if (order == 1) norms[row] = magnitude_of_row(gradient, num_columns);
    gradient += num_columns;
    weighted += num_columns;
  }
}

template void norms_of_rows(const float*, std::size_t, int, std::span<float>);
template void norms_of_rows(const double*, std::size_t, int, std::span<float>);
template void weigh_rows(const float*, std::size_t, int, std::span<const double>, float*,
                         std::span<float>);
template void weigh_rows(const double*, std::size_t, int, std::span<const double>, double*,
                         std::span<float>);

}  // namespace tamis::detail
