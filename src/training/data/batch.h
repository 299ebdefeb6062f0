// Batches: normalised images, with random crops and flips if asked for.
#pragma once

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <torch/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "training/data/dataset.h"

namespace tamis::training {

// Random crop and horizontal flip. What happens to a sample depends on (seed, epoch, sample index)
// alone: not on the batch it is in, the order, or the number of threads.
struct Augmentation {
  std::int64_t padding = 4;  // black border from which the crop of the original size is taken; >= 0
  bool flip = true;          // mirror left and right in half of the cases
  std::uint64_t seed = 0;
};

// float32 images [B, C, H, W] with mean 0 and deviation 1 per channel, int64 labels [B].
using Batch = torch::data::Example<>;

// Throws std::out_of_range if an index is.
Batch make_batch(const Dataset& data, std::span<const std::size_t> indices);
Batch make_batch(const Dataset& data, std::span<const std::size_t> indices,
                 const Augmentation& augmentation, std::uint64_t epoch);

// The same as a data set for torch::data::make_data_loader. Copies share the images and the epoch,
// so set_epoch reaches the worker threads; call it while no batch is being made.
class ImageBatches final : public torch::data::datasets::BatchDataset<ImageBatches, Batch> {
 public:
  explicit ImageBatches(Dataset data, std::optional<Augmentation> augmentation = std::nullopt);

  Batch get_batch(c10::ArrayRef<std::size_t> indices) override;
  // The type is torch::optional, which differs between versions of LibTorch.
  decltype(std::declval<const BatchDataset&>().size()) size() const override {
    return data_.size();
  }

  void set_epoch(std::uint64_t epoch) { *epoch_ = epoch; }

 private:
  Dataset data_;
  std::optional<Augmentation> augmentation_;
  std::shared_ptr<std::atomic<std::uint64_t>> epoch_;
};

}  // namespace tamis::training
