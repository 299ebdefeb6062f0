// Pruner: composes a score, a policy and a schedule, and owns the state of a run. Start here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tamis/epoch_plan.h"
#include "tamis/policy.h"
#include "tamis/recorder.h"
#include "tamis/schedule.h"
#include "tamis/scorer.h"
#include "tamis/types.h"

namespace tamis {

namespace detail {
class Planner;
class ShardedRank;
}  // namespace detail

struct PrunerOptions {
  std::size_t num_samples = 0;   // size of the data set, in [1, 2^32 - 1]
  std::uint64_t num_epochs = 0;  // length of the whole run, at least 1
  Spec policy = {.name = "infobatch"};
  // Unset: the score that the policy's authors use (PolicyInfo::default_score).
  std::optional<Spec> score = std::nullopt;
  // Share of the epochs that are pruned, in [0, 1]. Unset: Policy::default_delta().
  std::optional<double> delta = std::nullopt;
  // All randomness comes from this number and the epoch.
  std::uint64_t seed = 0;
  // The batch size of the training loop: every batch then holds samples of one weight, so that the
  // mean loss of a batch times its weight is exact. 0: batches are mixed.
  std::size_t homogeneous_batch_size = 0;
  // At least this share of every class is in each plan, in [0, 1]; 0: classes do not matter.
  double min_per_class = 0.0;
  // The class of every sample, any integers. Needed by min_per_class, otherwise not kept.
  std::vector<std::int32_t> labels = {};
  // The pruned share of the whole run, in [0, 1): sets the policy's prune_ratio anew in every
  // epoch. Unset: prune_ratio stays as it is.
  std::optional<double> target_prune = std::nullopt;
};

// The training loop's side:
//
//   tamis::Pruner pruner({.num_samples = n, .num_epochs = 200});
//   for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
//     const tamis::EpochPlan& plan = pruner.start_epoch(epoch);
//     ... for every batch of plan.order():
//     pruner.observe(batch, loss);
//   }
//
// Not thread-safe; const calls may run side by side.
class Pruner {
 public:
  // Throws std::invalid_argument if an option is out of range.
  explicit Pruner(const PrunerOptions& options);
  // With a score and a policy of the caller's own; options.score and options.policy are ignored.
  Pruner(const PrunerOptions& options, std::unique_ptr<Scorer> scorer,
         std::unique_ptr<Policy> policy);
  Pruner(Pruner&&) noexcept;
  Pruner& operator=(Pruner&&) noexcept;
  ~Pruner();

  // The same run with another score, not yet observed: BLS's one-line proxy.
  //   auto bls = tamis::Pruner({...}).with_score({"batch-loss", {{"alpha", 0.7}}});
  Pruner with_score(const Spec& score) &&;

  // The options with every default filled in, and labels numbered from 0.
  const PrunerOptions& options() const { return options_; }
  const Schedule& schedule() const { return schedule_; }
  const Scorer& scorer() const { return *scorer_; }
  std::size_t num_samples() const { return options_.num_samples; }

  // Makes epoch `epoch` the running one and returns its plan, made from the scores as they are now.
  // For the running epoch: returns the plan it has, unchanged. Throws std::out_of_range if epoch is
  // not below num_epochs.
  const EpochPlan& start_epoch(std::uint64_t epoch);

  // Plan of an epoch as it would be if it started now. Changes nothing.
  EpochPlan preview(std::uint64_t epoch) const;

  // The running epoch's plan; null before the first start_epoch.
  const EpochPlan* plan() const { return plan_ ? &*plan_ : nullptr; }

  // Books the loss of one training step on the samples of its batch. A NaN or infinite loss, or one
  // that the score cannot use, is counted in num_skipped_observations and changes nothing else;
  // returns false then. Throws std::out_of_range for an index out of range and
  // std::invalid_argument for an empty batch, for losses of another length than indices, and for a
  // mean loss given to a score that needs one loss per sample.
  bool observe(std::span<const SampleIndex> indices, double mean_loss);
  bool observe(std::span<const SampleIndex> indices, std::span<const float> losses);
  bool observe(std::span<const std::uint32_t> indices, double mean_loss);
  bool observe(std::span<const std::uint32_t> indices, std::span<const float> losses);

  // How many samples of the running plan have been trained on. Kept for the caller, and saved, so
  // that a resumed run goes on at plan()->order()[position()].
  std::size_t position() const { return position_; }
  // Throws std::out_of_range past the end of the plan.
  void set_position(std::size_t position);

  // Share of the run that is done, in [0, 1]; for learning-rate schedules. Every epoch counts the
  // same however many samples it has; grows with position() and is 1 at the end of the last epoch.
  double progress() const;
  // Share of the run so far that was left out: 1 - planned samples / (N * epochs started).
  double pruned_share() const;

  std::uint64_t num_observations() const { return num_observations_; }
  std::uint64_t num_skipped_observations() const { return num_skipped_observations_; }

  // One score per sample, NaN where unscored.
  std::vector<float> scores() const;
  std::size_t num_scored() const;

  // Records every observation from now on in `folder`; options.num_samples is filled in. A run that
  // has been observed before, so one that was loaded, goes on with the recording it had, as save()
  // and serialize() left it, and ignores the options. load() and deserialize() rewind it. Throws
  // std::runtime_error if the folder has a recording although the run is new, or has none of this
  // run.
  void record(const std::filesystem::path& folder, RecorderOptions options = {});
  // Null unless record() was called.
  Recorder* recorder() { return recorder_.get(); }
  const Recorder* recorder() const { return recorder_.get(); }

  // State as a safetensors file. Written to a temporary name beside `path`, synced and renamed:
  // after a failure or a crash `path` is what it was. Throws std::runtime_error.
  void save(const std::filesystem::path& path) const;
  // Throws std::runtime_error, and keeps the present state, if the file cannot be read, is damaged,
  // or belongs to other options. Afterwards this run goes on bit for bit as the saved one would
  // have.
  void load(const std::filesystem::path& path);
  // A pruner with the options and the state of a file.
  static Pruner from_file(const std::filesystem::path& path);

  // The same as bytes, for embedding in somebody else's checkpoint.
  std::vector<std::byte> serialize() const;
  void deserialize(std::span<const std::byte> bytes);

 private:
  friend class PrunerState;
  friend class detail::ShardedRank;  // makes its plans together with other ranks

  void begin_epoch(EpochPlan plan);
  void check_epoch(std::uint64_t epoch) const;
  bool book(const Observation& observation);
  // True if this is a part of the running plan's order itself: in range and without repetition.
  bool is_planned(std::span<const std::uint32_t> indices) const;
  std::uint64_t num_steps() const { return num_observations_ + num_skipped_observations_; }
  // Checks the range and copies to narrow_indices_.
  std::span<const std::uint32_t> narrow(std::span<const SampleIndex> indices);

  PrunerOptions options_;
  Schedule schedule_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<detail::Planner> planner_;  // refers to policy_ and to the labels of options_

  std::optional<EpochPlan> plan_;
  std::size_t position_ = 0;
  // Of a sharded run, in the middle of an epoch: position_ counts in the plan of each of so many
  // ranks. 0: it counts in plan_.
  std::uint64_t num_position_ranks_ = 0;
  std::uint64_t num_observations_ = 0;
  std::uint64_t num_skipped_observations_ = 0;
  std::uint64_t num_epochs_started_ = 0;
  std::uint64_t num_samples_planned_ = 0;  // over all started epochs

  std::unique_ptr<Recorder> recorder_;

  std::vector<std::uint32_t> narrow_indices_;  // scratch of observe()
};

}  // namespace tamis
