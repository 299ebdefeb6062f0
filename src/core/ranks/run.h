// Run: the state of a run and what differs between one process and the layouts of several.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/planner.h"
#include "core/ranks/loss_log.h"
#include "core/state/state_file.h"
#include "tamis/array.h"
#include "tamis/pruner.h"

namespace tamis::detail {

// What a run is made of.
struct RunParts {
  PrunerOptions options;  // of the whole data set; the layout is not automatic
  std::unique_ptr<Scorer> scorer;
  std::unique_ptr<Policy> policy;
  std::shared_ptr<Communicator> communicator = nullptr;  // null with one process
  std::uint64_t first = 0;                               // sample that this rank keeps
};

// See Pruner for what the public functions of the same name do; arguments are checked here.
class Run {
 public:
  virtual ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const PrunerOptions& options() const { return options_; }
  const Schedule& schedule() const { return schedule_; }
  const Scorer& scorer() const { return *scorer_; }
  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }
  std::uint64_t first_sample() const { return first_; }
  std::size_t num_kept() const { return scorer_->num_samples(); }

  const EpochPlan& start_epoch(std::uint64_t epoch);
  EpochPlan preview(std::uint64_t epoch) const;
  const EpochPlan* plan() const { return plan_ ? &*plan_ : nullptr; }

  void check_observation(std::size_t count, LossKind kind) const;

  // Norms: one per sample of the batch, or empty where they are not known.
  bool observe(std::size_t begin, std::size_t count, double mean_loss,
               std::span<const float> norms = {});
  bool observe(std::size_t begin, std::span<const float> losses, std::span<const float> norms = {});
  template <typename Index>
  bool observe(std::span<const Index> indices, double mean_loss, std::span<const float> norms = {});
  template <typename Index>
  bool observe(std::span<const Index> indices, std::span<const float> losses,
               std::span<const float> norms = {});

  std::size_t position() const { return position_; }
  void set_position(std::size_t position);
  double progress() const;
  double pruned_share() const;
  std::uint64_t num_observations() const { return num_observations_; }
  std::uint64_t num_skipped_observations() const { return num_skipped_observations_; }

  virtual void exchange() {}

  virtual void record(const std::filesystem::path& folder, RecorderOptions options);
  Recorder* recorder() const { return recorder_.get(); }
  void set_attachment(std::vector<std::byte> bytes) { attachment_ = std::move(bytes); }
  const std::vector<std::byte>& attachment() const { return attachment_; }

  // Collective. Gives the state to `use` on rank 0, or everywhere.
  void save(bool everywhere, const std::function<void(const SafetensorsWriter&)>& use);
  // Collective. `open` gives a verified state of a run with these options. Changes nothing if it,
  // or anything else, fails on any rank.
  void load(const std::function<SafetensorsReader()>& open);
  // Runs `action` on every rank; if it throws on one, all throw.
  void together(const std::function<void()>& action) const;

 protected:
  // The state of the whole data set, on ranks that collect it.
  struct WholeState {
    RunState state;
    std::vector<ScorerArray> arrays;
    std::vector<Array<std::byte>> storage = {};  // of arrays that are not the scorer's
  };

  explicit Run(RunParts parts);

  std::size_t rank() const { return communicator_ ? communicator_->rank() : 0; }
  std::size_t num_ranks() const { return communicator_ ? communicator_->size() : 1; }
  std::uint64_t num_steps() const { return num_observations_ + num_skipped_observations_; }

  // The samples of the next plan, of those that this rank keeps.
  virtual Selection select(std::uint64_t epoch) const;
  EpochPlan make_plan(Selection selection, std::uint64_t epoch, bool pruning) const;
  // This rank's view of a plan.
  virtual EpochPlan view(EpochPlan plan) const = 0;
  // Plans that differ are found before anybody trains on them.
  virtual void check_same_plan() const {}
  // Share of the running epoch that is done.
  virtual double share_done() const;

  virtual WholeState whole_state(bool collects);
  // Throws if this layout cannot go on with the state.
  virtual void check_state(const SafetensorsReader& file, const RunState& state) const;
  // Takes the plan and the position, after everything else has been taken.
  virtual void take_plan(const RunState& state) = 0;

  // Applies a loss to samples that this rank keeps.
  bool apply(const Observation& observation);
  // With one loss per sample; losses of samples that only fill up follow, and are left out.
  bool apply_losses(std::span<const std::uint32_t> indices, std::span<const float> losses,
                    std::span<const float> norms, bool distinct);
  // The samples of a batch of a plan that are scored, so without padding; valid until the next
  // call.
  std::span<const std::uint32_t> scored_samples(const EpochPlan& plan, std::size_t begin,
                                                std::size_t count) {
    if (plan.view().stride > 1) return gather_samples(plan, begin, count);
    const std::span<const std::uint32_t> order = plan.order();
    const std::size_t slot = std::min(plan.slot(begin), order.size());
    return order.subspan(slot, std::min(count, order.size() - slot));
  }

  PrunerOptions options_;
  Schedule schedule_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<Policy> policy_;
  std::shared_ptr<Communicator> communicator_;
  std::uint64_t first_ = 0;
  std::optional<Planner> planner_;  // refers to policy_ and to the labels of options_

  std::optional<EpochPlan> plan_;
  std::size_t position_ = 0;
  std::uint64_t num_observations_ = 0;
  std::uint64_t num_skipped_observations_ = 0;
  std::uint64_t num_epochs_started_ = 0;
  std::uint64_t num_samples_planned_ = 0;
  std::optional<LossLog> log_;  // replicated: losses that wait for exchange()
  std::unique_ptr<Recorder> recorder_;
  bool is_recorded_ = false;  // by some rank
  std::vector<std::byte> attachment_;

 private:
  std::span<const std::uint32_t> gather_samples(const EpochPlan& plan, std::size_t begin,
                                                std::size_t count);
  void check_epoch(std::uint64_t epoch) const;
  const EpochPlan& batch_plan(std::size_t begin, std::size_t count) const;
  void check_batch(std::size_t count, bool has_losses, bool has_norms) const;
  // Norms that nobody reads are not sent to other ranks.
  std::span<const float> logged_norms(std::span<const float> norms) const {
    const bool is_read = is_recorded_ || scorer_->needs() == LossKind::output_gradients;
    return is_read ? norms : std::span<const float>{};
  }
  // The mean as this layout keeps it.
  double kept_mean(double mean_loss) const {
    return communicator_ ? static_cast<double>(static_cast<float>(mean_loss)) : mean_loss;
  }
  template <typename Index>
  std::span<const std::uint32_t> kept_samples(std::span<const Index> indices);

  std::vector<std::uint32_t> indices_;  // scratch
};

// With a null scorer or policy: those of the options. Throws std::invalid_argument if an option is
// out of range. Not collective.
std::unique_ptr<Run> make_run(RunParts parts);

std::unique_ptr<Run> make_one_process(RunParts parts);
std::unique_ptr<Run> make_replicated(RunParts parts);
std::unique_ptr<Run> make_sharded(RunParts parts);

// First sample of a rank's part, the parts being as equal as can be; for rank == num_ranks the end.
std::uint64_t part_begin(std::uint64_t num_samples, std::size_t num_ranks, std::size_t rank);

// What replicated ranks compare before an epoch.
std::string plan_fields(std::uint64_t epoch, std::size_t begin, std::uint32_t checksum);

// Samples of each rank's plan if `num_selected` are shared by all.
std::size_t shared_size(std::size_t num_selected, std::size_t num_ranks, Remainder remainder);

}  // namespace tamis::detail
