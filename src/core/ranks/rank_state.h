// RankState: what DistributedPruner does in one layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tamis/distributed_pruner.h"

namespace tamis::detail {

// `pruner` is over the samples that this rank keeps: all of them or its part.
class RankState {
 public:
  RankState(Pruner pruner, std::shared_ptr<Communicator> communicator,
            const DistributedOptions& distribution);
  virtual ~RankState();

  const DistributedOptions& distribution() const { return distribution_; }
  Communicator& communicator() const { return *communicator_; }
  const Pruner& pruner() const { return pruner_; }
  const RankPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  std::size_t position() const { return position_; }

  virtual const PrunerOptions& options() const = 0;
  virtual std::uint64_t first_sample() const = 0;
  virtual double pruned_share() const = 0;

  // Collective; `epoch` is in range and not the running one.
  virtual void start_epoch(std::uint64_t epoch) = 0;
  virtual void exchange() = 0;

  // Arguments are checked; losses are one (the mean) or as many as the samples.
  virtual void observe(std::size_t begin, std::size_t count, std::span<const float> losses) = 0;
  virtual void observe_other(std::span<const std::uint32_t> indices,
                             std::span<const float> losses) = 0;
  virtual void set_position(std::size_t position) = 0;
  virtual double progress() const { return pruner_.progress(); }

  // Collective. Calls `use` with a Pruner over the whole data set that has the state of the run: on
  // rank 0, or everywhere.
  virtual void use_whole(bool everywhere, const std::function<void(const Pruner&)>& use) = 0;
  // Takes over the state that `load` gives a Pruner over the whole data set. Collective; changes
  // nothing if `load` throws on any rank.
  virtual void take_whole(const std::function<void(Pruner&)>& load) = 0;

 protected:
  // Books one loss or several on samples of pruner_.
  void book(std::span<const std::uint32_t> indices, std::span<const float> losses);
  // The samples of a batch of a rank's plan that are to be scored; valid until the next call.
  std::span<const std::uint32_t> scored_samples(const RankPlan& plan, std::size_t begin,
                                                std::size_t count);
  std::size_t num_ranks() const { return communicator_->size(); }
  bool pads() const { return distribution_.remainder == Remainder::pad; }

  Pruner pruner_;
  std::shared_ptr<Communicator> communicator_;
  DistributedOptions distribution_;
  std::optional<RankPlan> plan_;
  std::size_t position_ = 0;

 private:
  std::vector<std::uint32_t> indices_;
};

std::unique_ptr<RankState> make_replicated(const PrunerOptions& options,
                                           std::shared_ptr<Communicator> communicator,
                                           const DistributedOptions& distribution);
std::unique_ptr<RankState> make_sharded(const PrunerOptions& options,
                                        const std::shared_ptr<Communicator>& communicator,
                                        const DistributedOptions& distribution);

// First sample of a rank's part, the parts being as equal as can be; for rank == num_ranks the end.
std::uint64_t part_begin(std::uint64_t num_samples, std::size_t num_ranks, std::size_t rank);

// Samples of each rank's plan if `num_selected` are shared by all.
std::size_t shared_size(std::size_t num_selected, std::size_t num_ranks, Remainder remainder);

}  // namespace tamis::detail
