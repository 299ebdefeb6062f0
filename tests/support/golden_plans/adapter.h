// The library as the golden runs see it. To run them with another version, rewrite this file only.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/golden_plans/scenario.h"
#include "tamis/communicator.h"
#include "tamis/pruner.h"
#include "tamis/recording.h"

namespace tamis::test::golden::adapter {

// What connects a rank to the others; one per rank of a run, each used by one thread.
using Link = std::shared_ptr<Communicator>;

inline std::vector<Link> make_links(RankLayout layout) {
  if (layout.kind == Kind::one) return {nullptr};
  return make_thread_ranks(layout.num_ranks, std::chrono::seconds(60));
}

inline Spec to_spec(const Named& named) {
  return {named.name, {named.options.begin(), named.options.end()}};
}

inline PrunerOptions to_options(const Scenario& scenario, RankLayout layout) {
  PrunerOptions options{
      .num_samples = scenario.num_samples,
      .num_epochs = scenario.num_epochs,
      .policy = to_spec(scenario.policy),
      .score = to_spec(scenario.score),
      .delta = scenario.delta,
      .seed = scenario.seed,
      .homogeneous_batch_size = scenario.homogeneous_batch_size,
      .min_per_class = scenario.min_per_class,
      .target_prune = scenario.target_prune,
      .layout = layout.kind == Kind::sharded ? Layout::sharded : Layout::replicated,
      .remainder = scenario.drops_remainder ? Remainder::drop : Remainder::pad};
  if (scenario.min_per_class > 0.0) {
    for (std::size_t i = 0; i < scenario.num_samples; ++i) options.labels.push_back(class_of(i));
  }
  return options;
}

// One rank of a run. Calls marked "collective" are made by all ranks.
class Run {
 public:
  // Collective.
  Run(const Scenario& scenario, RankLayout layout, const Link& link)
      : pruner_(to_options(scenario, layout), link) {}

  bool needs_sample_losses() const { return pruner_.scorer().needs() == LossKind::sample_losses; }
  bool needs_norms() const { return pruner_.scorer().needs() == LossKind::output_gradients; }
  // The samples that this rank keeps scores of.
  std::uint64_t first_kept() const { return pruner_.first_sample(); }
  std::size_t num_kept() const { return pruner_.num_kept(); }

  // Collective. After load() and for the epoch that was saved: makes what is left of it the plan.
  void start_epoch(std::uint64_t epoch) {
    pruner_.start_epoch(epoch);
    begin_ = pruner_.position();
  }

  // The running plan. Positions count in what this rank has to do.
  bool pruning() const { return plan().pruning(); }
  // By all ranks together, of the whole epoch.
  std::uint64_t num_selected() const { return plan().num_selected(); }
  std::size_t size() const { return plan().size() - begin_; }
  std::uint64_t sample(std::size_t j) const {
    return static_cast<std::uint64_t>(plan().sample(begin_ + j));
  }
  bool is_padding(std::size_t j) const { return plan().is_padding(begin_ + j); }
  float weight(std::size_t j) const { return plan().weight(begin_ + j); }
  double mean_weight(std::size_t begin, std::size_t count) const {
    return plan().mean_weight(begin_ + begin, count);
  }
  // How the policy came to the plan, by name, without what does not apply.
  std::vector<std::pair<std::string, double>> report() const {
    const SelectionReport& report = plan().report();
    std::vector<std::pair<std::string, double>> fields;
    const auto add = [&](const char* name, const auto& value) {
      if (value) fields.emplace_back(name, static_cast<double>(*value));
    };
    add("threshold", report.threshold);
    add("num_below", report.num_below);
    add("num_kept_of_below", report.num_kept_of_below);
    for (const ScoreGroup& group : report.groups) {
      fields.emplace_back("group.size", static_cast<double>(group.size));
      fields.emplace_back("group.low", static_cast<double>(group.low));
      fields.emplace_back("group.high", static_cast<double>(group.high));
      fields.emplace_back("group.center", group.center);
    }
    add("window_begin", report.window_begin);
    add("window_end", report.window_end);
    add("within_group_sum_of_squares", report.within_group_sum_of_squares);
    add("num_restored", report.num_restored);
    add("prune_ratio", report.prune_ratio);
    add("lowest_reachable", report.lowest_reachable);
    add("highest_reachable", report.highest_reachable);
    return fields;
  }

  // A batch of the plan.
  void observe(std::size_t begin, std::size_t count, double mean_loss) {
    pruner_.observe(begin_ + begin, count, mean_loss);
  }
  void observe(std::size_t begin, std::span<const float> losses) {
    pruner_.observe(begin_ + begin, losses);
  }
  void observe(std::size_t begin, double mean_loss, std::span<const float> norms) {
    pruner_.observe(begin_ + begin, mean_loss, norms);
  }
  // A batch of any samples that this rank keeps.
  void observe_samples(std::span<const SampleIndex> samples, double mean_loss) {
    pruner_.observe(samples, mean_loss);
  }
  void observe_samples(std::span<const SampleIndex> samples, std::span<const float> losses) {
    pruner_.observe(samples, losses);
  }
  void observe_samples(std::span<const SampleIndex> samples, double mean_loss,
                       std::span<const float> norms) {
    pruner_.observe(samples, mean_loss, norms);
  }
  void set_position(std::size_t position) { pruner_.set_position(begin_ + position); }

  double progress() const { return pruner_.progress(); }
  double pruned_share() const { return pruner_.pruned_share(); }

  // The following three after start_epoch(), save() or load() only: all losses are in the scores
  // then.
  // Of the samples that this rank keeps.
  std::vector<float> scores() const { return pruner_.scores(); }
  std::uint64_t num_observations() const { return pruner_.num_observations(); }
  std::uint64_t num_skipped() const { return pruner_.num_skipped_observations(); }

  // Collective. A state file as bytes, the same on all ranks.
  std::vector<std::byte> save() { return pruner_.serialize(); }
  void load(std::span<const std::byte> bytes) { pruner_.deserialize(bytes); }
  // Collective. Out of a file.
  void load_file(const std::filesystem::path& path) { pruner_.load(path); }

  // One process: records the run from here on.
  void record(const std::filesystem::path& folder, std::vector<std::uint32_t> samples,
              std::size_t shard_bytes) {
    pruner_.record(folder, {.samples = std::move(samples), .shard_bytes = shard_bytes});
  }
  std::vector<std::uint32_t> recorded_samples() const {
    const auto samples = pruner_.recorder()->samples();
    return {samples.begin(), samples.end()};
  }
  void record_true_losses(std::uint64_t epoch, std::span<const float> losses) {
    pruner_.recorder()->record_true_losses(epoch, losses);
  }

 private:
  const EpochPlan& plan() const { return *pruner_.plan(); }

  Pruner pruner_;
  std::size_t begin_ = 0;  // one process: samples of the plan that were done when it was loaded
};

// A count of the whole run from the ranks' counts.
inline std::uint64_t total(RankLayout layout, std::span<const std::uint64_t> of_ranks) {
  if (layout.kind != Kind::sharded) return of_ranks[0];
  std::uint64_t sum = 0;
  for (const std::uint64_t count : of_ranks) sum += count;
  return sum;
}

// A recording as plain numbers.
struct RecordedBatch {
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  float mean_loss = 0.0F;
  std::vector<std::uint32_t> indices;
  std::vector<std::uint32_t> places;
  std::vector<float> losses;
};
struct RecordedRun {
  std::uint64_t num_samples = 0;
  std::vector<std::uint32_t> samples;
  std::vector<RecordedBatch> batches;
  std::vector<std::pair<std::uint64_t, std::vector<float>>> true_losses;  // by epoch
};

inline RecordedRun read_recording(const std::filesystem::path& folder) {
  const Recording recording(folder);
  RecordedRun run;
  run.num_samples = recording.num_samples();
  run.samples.assign(recording.samples().begin(), recording.samples().end());
  recording.read([&](const RecordedStep& step) {
    run.batches.push_back({step.step,
                           step.epoch,
                           step.mean_loss,
                           {step.indices.begin(), step.indices.end()},
                           {step.places.begin(), step.places.end()},
                           {step.losses.begin(), step.losses.end()}});
  });
  for (const TrueLosses& measured : recording.true_losses()) {
    run.true_losses.emplace_back(measured.epoch, measured.losses);
  }
  return run;
}

}  // namespace tamis::test::golden::adapter
