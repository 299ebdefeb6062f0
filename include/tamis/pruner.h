// Pruner: composes a score, a policy and a schedule, and owns the state of a run, on one process or
// several. Start here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tamis/communicator.h"
#include "tamis/epoch_plan.h"
#include "tamis/layout.h"
#include "tamis/policy.h"
#include "tamis/recorder.h"
#include "tamis/schedule.h"
#include "tamis/scorer.h"
#include "tamis/types.h"

namespace tamis {

namespace detail {
class Run;
}

struct PrunerOptions {
  // Size of the whole data set, in [1, 2^32 - 1]; sharded, the limit is that of each rank's part.
  std::size_t num_samples = 0;
  std::uint64_t num_epochs = 0;  // length of the whole run, in [1, 2^32 - 1]
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
  // The pruned share of the whole run, in [0, 1): sets the policy's prune_ratio for each epoch.
  // Unset: prune_ratio stays as it is.
  std::optional<double> target_prune = std::nullopt;
  // With a communicator: who keeps which scores, and what happens where the samples of an epoch
  // cannot be divided equally. One process ignores both.
  Layout layout = Layout::automatic;
  Remainder remainder = Remainder::pad;
  // Threads that start_epoch, preview and load may use, at least 1; worth it from 10^7 samples on.
  // They end with the call. No result depends on their number, and it is not saved.
  std::size_t threads = 1;
};

// The training loop's side, on every rank:
//
//   tamis::Pruner pruner({.num_samples = n, .num_epochs = 200});  // , communicator
//   for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
//     const tamis::EpochPlan& plan = pruner.start_epoch(epoch);
//     ... for every batch [begin, begin + count) of plan.size() samples, plan.sample(j) each:
//     pruner.observe(begin, count, loss);
//   }
//
// Calls marked "collective" are made by all ranks, or none; nothing else waits for other ranks, and
// nothing waits with one process. They throw std::runtime_error, naming the rank, if a rank does
// not make the call within the communicator's time limit. Not thread-safe; const calls that are not
// collective may run side by side.
class Pruner {
 public:
  using Norms = std::optional<std::span<const float>>;

  // Collective. Without a communicator the run has one process. Throws std::invalid_argument if an
  // option is out of range, and std::runtime_error on every rank if the ranks' options differ.
  explicit Pruner(const PrunerOptions& options,
                  std::shared_ptr<Communicator> communicator = nullptr);
  // With a score and a policy of the caller's own; options.score and options.policy are ignored.
  // The score is over the samples that this rank keeps (see num_kept).
  Pruner(const PrunerOptions& options, std::unique_ptr<Scorer> scorer,
         std::unique_ptr<Policy> policy, std::shared_ptr<Communicator> communicator = nullptr);
  Pruner(Pruner&&) noexcept;
  Pruner& operator=(Pruner&&) noexcept;
  ~Pruner();

  // The options with every default filled in, labels numbered from 0, and a layout that is not
  // automatic (one process: replicated).
  const PrunerOptions& options() const;
  const Schedule& schedule() const;
  const Scorer& scorer() const;
  Communicator* communicator() const;  // null with one process
  std::size_t num_samples() const { return options().num_samples; }
  Layout layout() const { return options().layout; }
  // The samples that this rank keeps scores of: [first_sample, first_sample + num_kept). All of
  // them, or in the sharded layout this rank's part.
  std::uint64_t first_sample() const;
  std::size_t num_kept() const;

  // Collective. Brings the scores up to date, makes epoch `epoch` the running one and returns this
  // rank's view of its plan. For the running epoch: returns the plan it has, unchanged, and is not
  // collective. Throws std::out_of_range if epoch is not below num_epochs.
  const EpochPlan& start_epoch(std::uint64_t epoch);

  // Plan of an epoch as it would be if it started now, from the scores that scores() gives. Changes
  // nothing. Collective in the sharded layout.
  EpochPlan preview(std::uint64_t epoch) const;

  // The running epoch's plan; null before the first start_epoch. Valid until the next start_epoch
  // or load.
  const EpochPlan* plan() const;

  // Applies the loss of one training step to samples [begin, begin + count) of this rank's plan,
  // without those that fill up. A NaN or infinite loss, or one that the score cannot use, is
  // counted in num_skipped_observations and changes nothing else; returns false then. Replicated
  // ranks keep the loss for exchange() and return true. Throws std::out_of_range past the end of
  // the plan, std::runtime_error if no epoch is running, and std::invalid_argument for an empty
  // batch and for a loss given to a score that needs more: one loss per sample, or norms. With
  // several ranks a mean is kept as a 32-bit float.
  bool observe(std::size_t begin, std::size_t count, double mean_loss);
  bool observe(std::size_t begin, std::span<const float> losses, Norms norms = std::nullopt);

  // The same for samples by their index in the whole data set, in the plan or not. Throws
  // std::out_of_range for an index out of range, or of another rank's part (sharded), and
  // std::invalid_argument for losses of another length than indices.
  //
  // `norms`, if given, are those of watched outputs, see below.
  bool observe(std::span<const SampleIndex> indices, double mean_loss, Norms norms = std::nullopt);
  bool observe(std::span<const SampleIndex> indices, std::span<const float> losses,
               Norms norms = std::nullopt);
  bool observe(std::span<const std::uint32_t> indices, double mean_loss,
               Norms norms = std::nullopt);
  bool observe(std::span<const std::uint32_t> indices, std::span<const float> losses,
               Norms norms = std::nullopt);

  // With watched outputs: besides the loss, for every sample the norm of the loss's gradient by its
  // output, for the score output-gradient and for recordings. Any factor that all norms have in
  // common is allowed. Other scores take the loss alone. Norms of which one is negative or not
  // finite, or that are all 0, are counted as skipped by output-gradient. `mean_loss` is that of
  // all rows of the batch, as are the norms, samples that fill up included. Throws
  // std::invalid_argument if there are not as many norms as samples.
  bool observe(std::size_t begin, double mean_loss, std::span<const float> norms);

  // Throws std::invalid_argument if observe() would for a batch of `count` samples.
  void check_observation(std::size_t count, LossKind kind) const;

  // How many samples of this rank's plan have been trained on. Kept for the caller, and saved.
  // Ranks train in step, so it is the same on all when they save.
  std::size_t position() const;
  // Throws std::out_of_range past the end of the plan.
  void set_position(std::size_t position);

  // Share of the run that is done, in [0, 1]; for learning-rate schedules. Every epoch counts the
  // same however many samples it has; grows with position() and is 1 at the end of the last epoch.
  double progress() const;
  // Share of the run so far that was left out: 1 - planned samples / (N * epochs started), of all
  // ranks.
  double pruned_share() const;

  // Collective. Makes the losses observed so far part of the scores of all ranks (replicated), and
  // agrees on the numbers that a score keeps for the whole run (sharded). start_epoch, save and
  // serialize do it by themselves. Nothing to do with one process.
  void exchange();

  // Of the samples that this rank keeps, as of the last exchange (replicated) or now: one score
  // per sample, NaN where unscored.
  std::vector<float> scores() const;
  std::size_t num_scored() const;
  // As of the last exchange (replicated); sharded: of this rank.
  std::uint64_t num_observations() const;
  std::uint64_t num_skipped_observations() const;

  // Collective. Records every observation from now on in `folder`; options.num_samples is filled
  // in. Replicated: rank 0 records what all ranks observed, in the order in which exchange()
  // applies it. A run that has been observed before, so one that was loaded, goes on with the
  // recording it had, as save() and serialize() left it, and ignores the options. load() and
  // deserialize() rewind it. Throws std::runtime_error if the folder has a recording although the
  // run is new, or has none of this run, and std::invalid_argument in the sharded layout, where no
  // rank knows all samples.
  void record(const std::filesystem::path& folder, RecorderOptions options = {});
  // Null unless record() was called, and on ranks other than 0.
  Recorder* recorder();
  const Recorder* recorder() const;

  // Bytes of the caller's own that are saved with the state, different ones on each rank; empty
  // unless set. load() and deserialize() replace them by those that this rank saved, and refuse a
  // state with attachments of another number of ranks.
  void set_attachment(std::vector<std::byte> bytes);
  const std::vector<std::byte>& attachment() const;

  // Collective. State as a safetensors file: the same file whatever the layout and the number of
  // ranks. Rank 0 writes it; with the sharded layout it needs memory for the whole state, and there
  // are at most 2^32 - 1 samples. Written to a temporary name in the same folder, synced and
  // renamed: after a failure or a crash `path` is what it was. Throws std::runtime_error, on all
  // ranks.
  void save(const std::filesystem::path& path);
  // Collective: every rank reads the file. Throws std::runtime_error on every rank, and keeps the
  // present state, if any rank cannot read it, it is damaged, or belongs to other options.
  //
  // Afterwards this run goes on bit for bit as the saved one would have, at position() of the plan.
  // The number of ranks and the layout may be others than those that saved the state, except that a
  // sharded run saved in the middle of an epoch goes on with as many ranks. If the saved position
  // falls between two steps of another number of ranks, the plan is the rest of the epoch.
  void load(const std::filesystem::path& path);
  // A run of one process with the options and the state of a file.
  static Pruner from_file(const std::filesystem::path& path);

  // Collective. The same as bytes, for embedding in somebody else's checkpoint; serialize() returns
  // them on every rank.
  std::vector<std::byte> serialize();
  void deserialize(std::span<const std::byte> bytes);

 private:
  std::unique_ptr<detail::Run> run_;  // what differs between one process and the layouts
};

}  // namespace tamis
