// The gradient of a batch's outputs in memory: one row per sample, all rows contiguous.
#pragma once

#include <cstddef>
#include <span>

namespace tamis::detail {

// The norm of every row. Of order 2, the Euclidean one, squares that a float cannot hold count,
// too; of order 1, the sum of magnitudes. T is float or double.
template <typename T>
void norms_of_rows(const T* gradient, std::size_t num_columns, int order, std::span<float> norms);

// The same in one walk over the memory, and every row times its factor to `weighted`. As many
// factors as norms.
template <typename T>
void weigh_rows(const T* gradient, std::size_t num_columns, int order,
                std::span<const double> factors, T* weighted, std::span<float> norms);

}  // namespace tamis::detail
