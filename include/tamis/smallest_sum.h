// The subset of given size whose vectors add up to the least: what dataset pruning (Yang et al.,
// Dataset Pruning: Reducing Training Data by Examining Generalization Influence, 2023) removes, the
// vectors being the samples' influences on the parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tamis/bitmap.h"

namespace tamis {

// `vectors` has `dimension` floats per sample. Exactly `count` samples, chosen so that the norm of
// their sum is small: starting from those with the shortest vectors and from a random subset, and
// from the greedy one where that is affordable, pairs are exchanged as long as that helps; the best
// result counts. So it is never worse than any of these. Finding the very best is NP-hard.
// Deterministic. Throws std::invalid_argument if the sizes do not fit.
Bitmap choose_smallest_sum(std::span<const float> vectors, std::size_t dimension, std::size_t count,
                           std::uint64_t seed);

// The norm of the sum of the chosen vectors. Requires: one bit per vector.
double sum_norm(std::span<const float> vectors, std::size_t dimension, const Bitmap& chosen);

}  // namespace tamis
