// A least share of every class in a selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random/random.h"
#include "tamis/selection.h"

namespace tamis::detail {

// Replaces the labels by class numbers 0, 1, 2, ... in the same order; returns the class sizes.
std::vector<std::size_t> number_classes(std::span<std::int32_t> labels);

// Puts pruned samples back, uniformly at random in each class, until ceil(share * size) of every
// class are kept. Where the selection has weights, those of the class are dealt out again between
// its rescaled and its restored samples, so that their sum stays right. Returns how many were put
// back. Requires: labels and sizes from number_classes.
std::size_t apply_class_floor(std::span<const std::int32_t> labels,
                              std::span<const std::size_t> class_sizes, double share,
                              Selection& selection, RandomStream& random);

}  // namespace tamis::detail
