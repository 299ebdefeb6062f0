// EpochPlan: the samples of one epoch in training order, with their weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "tamis/array.h"
#include "tamis/selection.h"
#include "tamis/types.h"

namespace tamis {

// Immutable, so safe to read from several threads; copies share the order. 4 bytes per selected
// sample plus two bits per sample of the data set.
class EpochPlan {
 public:
  EpochPlan() = default;

  // The selection in an order that depends on (seed, epoch, selection) alone. With a
  // `homogeneous_batch_size`, every so many samples in a row have the same weight.
  EpochPlan(Selection selection, std::uint64_t seed, std::uint64_t epoch, bool pruning,
            std::size_t homogeneous_batch_size = 0);

  std::uint64_t epoch() const { return epoch_; }
  // True in an epoch that the schedule prunes, even if the policy kept every sample.
  bool pruning() const { return pruning_; }
  std::size_t num_samples() const { return selection_.kept.size(); }
  std::size_t size() const { return size_; }
  std::size_t num_pruned() const { return num_samples() - size(); }

  // The samples in training order. The first call shuffles them.
  std::span<const std::uint32_t> order() const;

  // Copies samples [begin, begin + out.size()) of the order. Throws std::out_of_range past the end.
  void copy_to(std::size_t begin, std::span<SampleIndex> out) const;

  // Number of batches of `batch_size`, the last one possibly smaller, or dropped.
  std::size_t num_batches(std::size_t batch_size, bool drop_last = false) const;

  // What the loss of a sample is multiplied by: 1, or selection().rescale.
  float weight(std::size_t index) const {
    return !selection_.rescaled.empty() && selection_.rescaled.test(index) ? selection_.rescale
                                                                           : 1.0F;
  }
  // Mean weight of a batch: what the mean loss of that batch is multiplied by. Throws
  // std::out_of_range if an index is; an empty batch has weight 1.
  double mean_weight(std::span<const SampleIndex> indices) const;
  double mean_weight(std::span<const std::uint32_t> indices) const;

  const Selection& selection() const { return selection_; }

 private:
  // Most of a plan's cost, and not needed to know its size or to save it.
  struct Order {
    std::once_flag made;
    Array<std::uint32_t> samples;
  };

  Array<std::uint32_t> make_order() const;

  Selection selection_;
  std::size_t size_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t epoch_ = 0;
  bool pruning_ = false;
  std::size_t homogeneous_batch_size_ = 0;
  std::shared_ptr<Order> order_ = std::make_shared<Order>();
};

}  // namespace tamis
