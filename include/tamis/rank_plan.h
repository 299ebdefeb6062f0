// RankPlan: the samples of one epoch that one rank trains on, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tamis/epoch_plan.h"
#include "tamis/types.h"

namespace tamis {

// What happens where the samples of an epoch cannot be divided equally: some are used twice, or a
// few at the end of the (shuffled) order are left out of this epoch.
enum class Remainder { pad, drop };

// A view of an EpochPlan: of the whole epoch's, of which rank r of W takes samples r, r + W, ...,
// or of one that has this rank's samples only. All ranks have equally many samples, so with equal
// batch sizes equally many batches. Immutable; valid until the epoch ends.
class RankPlan {
 public:
  struct View {
    std::size_t begin = 0;           // samples of the plan that are done already
    std::size_t stride = 1;          // number of ranks that share the plan
    std::size_t offset = 0;          // of this rank among them
    std::uint64_t first_sample = 0;  // what index 0 of the plan is in the whole data set
    std::uint64_t num_samples = 0;   // of the whole data set
    std::uint64_t num_selected = 0;  // by all ranks' plans together
  };

  RankPlan(const EpochPlan& plan, const View& view, std::size_t size)
      : plan_(&plan), view_(view), size_(size) {}

  std::uint64_t epoch() const { return plan_->epoch(); }
  bool pruning() const { return plan_->pruning(); }
  // Of the whole data set, and of these the ones that this epoch uses, on all ranks.
  std::uint64_t num_samples() const { return view_.num_samples; }
  std::uint64_t num_selected() const { return view_.num_selected; }
  const SelectionReport& report() const { return plan_->selection().report; }

  // Samples that this rank trains on; as many on every rank.
  std::size_t size() const { return size_; }
  std::size_t num_batches(std::size_t batch_size, bool drop_last = false) const;

  // Sample j of this rank, for j < size(), by its index in the whole data set.
  SampleIndex sample(std::size_t j) const {
    return static_cast<SampleIndex>(view_.first_sample + index(j));
  }
  // Samples [begin, begin + out.size()). Throws std::out_of_range past the end.
  void copy_to(std::size_t begin, std::span<SampleIndex> out) const;
  // True if sample j is there to fill up: another rank, or this one, has it as well. It is trained
  // on, but not scored.
  bool is_padding(std::size_t j) const { return slot(j) >= plan_->size(); }

  float weight(std::size_t j) const { return plan_->weight(index(j)); }
  // Of samples [begin, begin + count); 1 for none. Throws std::out_of_range past the end.
  double mean_weight(std::size_t begin, std::size_t count) const;

  // Position of sample j in the plan that this is a view of; not below its size for padding.
  std::size_t slot(std::size_t j) const { return view_.begin + view_.offset + j * view_.stride; }
  // The same rank's view of the same samples if it were another one of those that share the plan.
  RankPlan of_rank(std::size_t rank) const;
  const EpochPlan& plan() const { return *plan_; }

 private:
  std::size_t index(std::size_t j) const {
    if (plan_->size() == 0) return 0;  // padding on a rank of which nothing was selected
    return plan_->order()[slot(j) % plan_->size()];
  }
  void check_range(std::size_t begin, std::size_t count) const;

  const EpochPlan* plan_;
  View view_;
  std::size_t size_;
};

}  // namespace tamis
