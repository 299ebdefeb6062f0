// EpochPlan: the samples of one epoch that this rank trains on, in order, with their weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tamis/selection.h"
#include "tamis/types.h"

namespace tamis {

// One rank's view of an epoch; with one process the view is the whole epoch. Positions j count in
// this view, samples by their index in the whole data set. All ranks have equally many samples, so
// with equal batch sizes equally many batches.
//
// Immutable, so safe to read from several threads. Copies are cheap: they share the selection and
// the order, 4 bytes per selected sample plus two bits per sample of the data set.
class EpochPlan {
 public:
  // Which samples of the order a rank takes, and what they are in the whole data set.
  struct View {
    std::size_t size = 0;            // samples of this rank, with those that fill up
    std::size_t begin = 0;           // samples of the order that were done when a run was loaded
    std::size_t stride = 1;          // number of ranks that share the order
    std::size_t offset = 0;          // of this rank among them
    std::uint64_t first_sample = 0;  // what index 0 of the order is in the whole data set
    std::uint64_t num_samples = 0;   // of the whole data set
    std::uint64_t num_selected = 0;  // by all ranks together
  };

  // The selection in an order that depends on (seed, epoch, selection) alone. With a
  // `homogeneous_batch_size`, the samples of each batch of this size have the same weight.
  EpochPlan(Selection selection, std::uint64_t seed, std::uint64_t epoch, bool pruning,
            std::size_t homogeneous_batch_size = 0);
  // Another view of the same order.
  EpochPlan(const EpochPlan& plan, const View& view) : EpochPlan(plan) { view_ = view; }

  std::uint64_t epoch() const;
  // True in an epoch that the schedule prunes, even if the policy kept every sample.
  bool pruning() const;
  // Of the whole data set, and of these the ones that this epoch uses, on all ranks.
  std::uint64_t num_samples() const { return view_.num_samples; }
  std::uint64_t num_selected() const { return view_.num_selected; }
  std::uint64_t num_pruned() const { return num_samples() - num_selected(); }

  // Samples that this rank trains on.
  std::size_t size() const { return view_.size; }
  // Number of batches of `batch_size`, the last one possibly smaller, or dropped.
  std::size_t num_batches(std::size_t batch_size, bool drop_last = false) const;

  // Sample j of this rank, for j < size(), by its index in the whole data set.
  SampleIndex sample(std::size_t j) const {
    return static_cast<SampleIndex>(view_.first_sample + index(j));
  }
  // Samples [begin, begin + out.size()). Throws std::out_of_range past the end.
  void copy_to(std::size_t begin, std::span<SampleIndex> out) const;
  // True if sample j is there to fill up: another rank, or this one, has it as well. It is trained
  // on, but not scored. Never with one process.
  bool is_padding(std::size_t j) const { return slot(j) >= num_ordered_; }

  // What the loss of sample j is multiplied by: 1, or selection().rescale.
  float weight(std::size_t j) const;
  // What the mean loss of samples [begin, begin + count) is multiplied by: their mean weight; 1 for
  // none. Throws std::out_of_range past the end.
  double mean_weight(std::size_t begin, std::size_t count) const;

  // The same for samples by their index in the whole data set. Throws std::out_of_range if an index
  // is, or if another rank keeps it (sharded layout).
  float weight_of(SampleIndex sample) const;
  double mean_weight_of(std::span<const SampleIndex> samples) const;

  // What this is a view of: the samples of the whole epoch in training order, or in the sharded
  // layout those of this rank's part, counted from its first sample. The first call shuffles them.
  std::span<const std::uint32_t> order() const;
  const Selection& selection() const;
  const SelectionReport& report() const { return selection().report; }

  // Position of sample j in order(); not below its size for padding.
  std::size_t slot(std::size_t j) const { return view_.begin + view_.offset + j * view_.stride; }
  // The view of another one of the ranks that share the order.
  EpochPlan of_rank(std::size_t rank) const;
  const View& view() const { return view_; }

 private:
  struct Shared;

  // Sample j in the order's own count.
  std::size_t index(std::size_t j) const {
    if (num_ordered_ == 0) return 0;  // padding on a rank of which nothing was selected
    const std::size_t at = slot(j);
    return order()[at < num_ordered_ ? at : at % num_ordered_];
  }
  // The same for a sample of the whole data set.
  std::size_t index_of(SampleIndex sample) const;
  bool is_rescaled(std::size_t index) const;
  // Calls use(k, index of sample begin + k) for k < count.
  template <typename Use>
  void visit(std::size_t begin, std::size_t count, Use use) const;
  void check_range(std::size_t begin, std::size_t count) const;

  std::shared_ptr<Shared> shared_;
  std::size_t num_ordered_ = 0;  // length of the order
  View view_;
};

}  // namespace tamis
