// DistributedPruner: one run on several processes. See docs/distributed.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tamis/communicator.h"
#include "tamis/pruner.h"
#include "tamis/rank_plan.h"

namespace tamis {

namespace detail {
class RankState;
}

// Who keeps which scores.
enum class Layout {
  automatic,   // replicated up to kMaxReplicated samples, sharded above
  replicated,  // every rank keeps all scores; ranks exchange one number per batch after an epoch
  sharded,     // a rank keeps the scores of its own part of the samples, and trains on these only;
               // ranks exchange statistics
};
inline constexpr std::uint64_t kMaxReplicated = 100'000'000;

// "automatic", "replicated" or "sharded". Throws std::invalid_argument for another name.
Layout parse_layout(std::string_view name);
std::string_view to_text(Layout layout);

struct DistributedOptions {
  Layout layout = Layout::automatic;
  Remainder remainder = Remainder::pad;
};

// The training loop's side, on every rank:
//
//   tamis::DistributedPruner pruner({.num_samples = n, .num_epochs = 200}, communicator);
//   for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
//     const tamis::RankPlan& plan = pruner.start_epoch(epoch);
//     ... for every batch [begin, begin + count) of this rank's plan.size() samples:
//     pruner.observe(begin, count, loss);
//   }
//
// Calls marked "collective" are made by all ranks, or none; nothing else waits for other ranks.
// They throw std::runtime_error, naming the rank, if a rank does not come within the communicator's
// time limit. Not thread-safe.
class DistributedPruner {
 public:
  // Collective. options.num_samples is the size of the whole data set; with the sharded layout it
  // may exceed 2^32 if no rank's part does. Throws std::invalid_argument if an option is out of
  // range, and std::runtime_error on every rank if the ranks have different options.
  DistributedPruner(const PrunerOptions& options, std::shared_ptr<Communicator> communicator,
                    const DistributedOptions& distribution = {});
  DistributedPruner(DistributedPruner&&) noexcept;
  DistributedPruner& operator=(DistributedPruner&&) noexcept;
  ~DistributedPruner();

  // Every default filled in; the layout is never automatic.
  const PrunerOptions& options() const;
  const DistributedOptions& distribution() const;
  const Schedule& schedule() const;
  const Scorer& scorer() const;
  Communicator& communicator() const;
  // The samples that this rank keeps scores of: all, or [first_sample, first_sample + num_kept).
  std::uint64_t first_sample() const;
  std::size_t num_kept() const;

  // Collective. Brings the scores up to date and makes `epoch` the running one. For the running
  // epoch: returns the plan it has, and is not collective. Throws std::out_of_range if epoch is not
  // below num_epochs. After load() the plan is the part of the saved epoch that was left to do.
  const RankPlan& start_epoch(std::uint64_t epoch);
  // The running epoch's; null before the first start_epoch.
  const RankPlan* plan() const;

  // Books a loss on samples [begin, begin + count) of this rank's plan, without those that only
  // fill up. Throws std::out_of_range past the end, std::runtime_error if no epoch is running, and
  // std::invalid_argument as Pruner::observe does. Losses are kept as 32-bit floats.
  void observe(std::size_t begin, std::size_t count, double mean_loss);
  void observe(std::size_t begin, std::span<const float> losses);
  // Books a loss on samples of the whole data set that are not those of the plan. The sharded
  // layout takes samples of this rank's own part only.
  void observe_other(std::span<const SampleIndex> indices, double mean_loss);
  void observe_other(std::span<const SampleIndex> indices, std::span<const float> losses);

  // How many samples of this rank's plan have been trained on; saved. Ranks train in step, so it is
  // the same on all when they save. Throws std::out_of_range past the end of the plan.
  std::size_t position() const;
  void set_position(std::size_t position);

  // As Pruner's, of the whole run on all ranks.
  double progress() const;
  double pruned_share() const;

  // Collective: makes the losses booked so far part of the scores of all ranks (replicated) and
  // agrees on the numbers that a score keeps for the whole run. start_epoch does it by itself.
  void exchange();
  // Of the samples that this rank keeps scores of, as of the last exchange (replicated) or now.
  std::vector<float> scores() const;
  // As of the last exchange; sharded: of this rank.
  std::uint64_t num_observations() const;
  std::uint64_t num_skipped_observations() const;

  // Collective. One file, whatever the layout and the number of ranks: that of a Pruner over the
  // whole data set. Rank 0 writes it; all ranks throw if it fails. With the sharded layout rank 0
  // needs memory for the whole state, and there are at most 2^32 - 1 samples.
  void save(const std::filesystem::path& path);
  // Collective. Every rank reads the file. The number of ranks and the layout may be others than
  // those that saved it, except that a sharded run saved in the middle of an epoch goes on with as
  // many ranks. Throws std::runtime_error on every rank, and keeps the present state, if any rank
  // cannot.
  void load(const std::filesystem::path& path);
  // The same as bytes. serialize() returns them on every rank.
  std::vector<std::byte> serialize();
  void deserialize(std::span<const std::byte> bytes);

 private:
  std::unique_ptr<detail::RankState> state_;
};

}  // namespace tamis
