// ShardedRank: a rank that keeps the scores of its own part of the samples only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/plan/planner.h"
#include "core/ranks/rank_state.h"

namespace tamis::detail {

// The samples are cut into contiguous parts of equal length, one per rank. A rank trains on samples
// of its part, so it needs no score of another; ranks make their selections together, from
// statistics that they add up. pruner_ is over the part and knows samples by their place in it.
class ShardedRank final : public RankState {
 public:
  ShardedRank(const PrunerOptions& options, const std::shared_ptr<Communicator>& communicator,
              const DistributedOptions& distribution);

  const PrunerOptions& options() const override { return options_; }
  std::uint64_t first_sample() const override { return first_; }
  double pruned_share() const override;
  double progress() const override;

  void start_epoch(std::uint64_t epoch) override;
  void exchange() override;
  void observe(std::size_t begin, std::size_t count, std::span<const float> losses) override;
  void observe_other(std::span<const std::uint32_t> indices,
                     std::span<const float> losses) override;
  void set_position(std::size_t position) override { position_ = position; }

  void use_whole(bool everywhere, const std::function<void(const Pruner&)>& use) override;
  void take_whole(const std::function<void(Pruner&)>& load) override;

 private:
  Selection select(std::uint64_t epoch);
  EpochPlan make_plan(Selection selection, std::uint64_t epoch, bool pruning) const;
  void view_plan(std::size_t begin);
  void check_whole_fits() const;
  bool is_mid_epoch() const;

  void gather_arrays(Pruner* whole);
  void gather_plan(Pruner* whole);
  Bitmap gather_bitmap(const Bitmap& part);
  Bitmap part_of(const Bitmap& whole) const;

  PrunerOptions options_;  // those of the whole data set
  std::uint64_t first_;
  Planner planner_;
  std::size_t begin_ = 0;  // samples of the rank's plan that were done when it was loaded
  OptionMap numbers_;      // the scorer's when the ranks last agreed on them
  std::uint64_t num_epochs_started_ = 0;
  std::uint64_t num_samples_planned_ = 0;  // by all ranks
};

}  // namespace tamis::detail
