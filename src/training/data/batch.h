// Batches: normalised images, with random crops and flips as an option.
#pragma once

#include <torch/data/example.h>
#include <torch/types.h>

#include <cstdint>
#include <span>

#include "tamis/types.h"
#include "training/data/dataset.h"

namespace tamis::training {

// Random crop and horizontal flip. What happens to a sample depends on (seed, epoch, sample index)
// alone: not on the batch it is in, the order, or the number of threads.
struct Augmentation {
  std::int64_t padding = 4;     // border from which the crop of the original size is taken; >= 0
  bool mirrors_border = false;  // the border is the image mirrored at its edge, instead of black
  bool flip = true;             // mirror left and right in half of the cases
  std::uint64_t seed = 0;
};

// float32 images [B, C, H, W] with mean 0 and deviation 1 per channel, int64 labels [B].
using Batch = torch::data::Example<>;

// Throws std::out_of_range if an index is.
Batch make_batch(const Dataset& data, std::span<const SampleIndex> indices);
Batch make_batch(const Dataset& data, std::span<const SampleIndex> indices,
                 const Augmentation& augmentation, std::uint64_t epoch);

}  // namespace tamis::training
