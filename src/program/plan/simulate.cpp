// tamis simulate: a pruner at work on a synthetic loss landscape, with its cost.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/require_memory.h"
#include "program/analyze/loss_landscape.h"
#include "program/commands.h"
#include "program/plan/simulate_ranks.h"
#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/shared/spec_flags.h"
#include "program/shared/table.h"
#include "program/shared/terminal.h"
#include "runs/spec_json.h"
#include "tamis/method.h"
#include "tamis/pruner.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;

struct SimulateArguments {
  std::uint64_t num_samples = 1'000'000;
  std::uint64_t num_epochs = 20;
  std::uint64_t batch_size = 128;
  SpecFlags spec;
  std::optional<double> delta;
  std::uint64_t seed = 0;
  bool homogeneous = false;
  std::optional<double> target_prune;
  std::string save;
  std::uint64_t num_ranks = 0;  // 0: one process
  std::string layout;           // empty: automatic
  std::uint64_t num_threads = 1;
  bool json = false;
};

// What one epoch, or all of them, took.
struct Cost {
  std::size_t size = 0;
  double plan_seconds = 0.0;
  double observe_seconds = 0.0;

  double ns_per_sample() const {
    return size == 0 ? 0.0 : 1e9 * (plan_seconds + observe_seconds) / static_cast<double>(size);
  }
  Cost& operator+=(const Cost& other) {
    size += other.size;
    plan_seconds += other.plan_seconds;
    observe_seconds += other.observe_seconds;
    return *this;
  }
};

template <typename Call>
double seconds_of(Call call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs epochs on the landscape. Only planning and observing are timed, not the making of losses.
class Simulation {
 public:
  Simulation(const PrunerOptions& options, std::size_t batch_size)
      : pruner_(options),
        landscape_(options.num_samples, options.num_epochs, options.seed),
        batch_size_(batch_size),
        losses_(options.num_samples) {}

  Pruner& pruner() { return pruner_; }

  Cost run_epoch(std::uint64_t epoch) {
    Cost cost;
    cost.plan_seconds = seconds_of([&] { pruner_.start_epoch(epoch); });
    const EpochPlan& plan = *pruner_.plan();
    cost.size = plan.size();
    const std::span<float> losses(losses_.data(), plan.size());
    landscape_.losses(plan.order(), epoch, losses);
    means_.clear();
    for_each_batch(losses, [&](std::size_t, std::span<const float> batch) {
      means_.push_back(mean_of(batch));
    });
    cost.observe_seconds = seconds_of([&] {
      for_each_batch(losses, [&](std::size_t begin, std::span<const float> batch) {
        observe_batch(pruner_, begin, batch, means_[begin / batch_size_]);
      });
    });
    pruner_.set_position(plan.size());
    return cost;
  }

 private:
  template <typename Use>
  void for_each_batch(std::span<const float> losses, Use use) const {
    for (std::size_t begin = 0; begin < losses.size(); begin += batch_size_) {
      use(begin, losses.subspan(begin, std::min(batch_size_, losses.size() - begin)));
    }
  }

  Pruner pruner_;
  LossLandscape landscape_;
  std::size_t batch_size_;
  Array<float> losses_;
  std::vector<double> means_;
};

double share_left_out(const EpochPlan& plan) {
  return static_cast<double>(plan.num_pruned()) / static_cast<double>(plan.num_samples());
}

ordered_json epoch_json(const EpochPlan& plan, const Cost& cost) {
  return {{"epoch", plan.epoch()},
          {"pruning", plan.pruning()},
          {"size", plan.size()},
          {"num_pruned", plan.num_pruned()},
          {"pruned_share", share_left_out(plan)},
          {"plan_seconds", cost.plan_seconds},
          {"observe_seconds", cost.observe_seconds},
          {"ns_per_sample", cost.ns_per_sample()}};
}

constexpr std::string_view kHeader =
    "epoch   samples used   pruned    plan ms   observe ms   ns/sample\n";

std::string epoch_row(const EpochPlan& plan, const Cost& cost) {
  const double share = share_left_out(plan);
  return fmt::format("{:>5}  {:>13}  {:>5.1f} %  {:>9.2f}  {:>11.2f}  {:>10.1f}\n", plan.epoch(),
                     with_commas(plan.size()), 100.0 * share, 1e3 * cost.plan_seconds,
                     1e3 * cost.observe_seconds, cost.ns_per_sample());
}

std::string introduction(const Pruner& pruner, std::uint64_t batch_size) {
  const PrunerOptions& options = pruner.options();
  return fmt::format("{}, {}, batches of {}, seed {}\nscore  {}\npolicy {}, delta {}\n\n",
                     counted(options.num_samples, "synthetic sample"),
                     counted(options.num_epochs, "epoch"), batch_size, options.seed,
                     to_text(options.score.value()), to_text(options.policy),
                     options.delta.value());
}

// Empty unless the run missed the share that it was to prune.
std::string missed_target(const Pruner& pruner) {
  const auto target = pruner.options().target_prune;
  if (!target || std::abs(pruner.pruned_share() - *target) <= 0.005) return "";
  return fmt::format("the target was to prune {:.1f} %, which the policy could not reach\n",
                     100.0 * *target);
}

std::string conclusion(const Pruner& pruner, const Cost& total) {
  const std::string text = fmt::format(
      "\npruned {:.1f} % of {} x {} samples; planning {:.1f} ms, observing {:.1f} ms, "
      "{:.1f} ns per sample used\n",
      100.0 * pruner.pruned_share(), pruner.options().num_epochs, with_commas(pruner.num_samples()),
      1e3 * total.plan_seconds, 1e3 * total.observe_seconds, total.ns_per_sample());
  return text + missed_target(pruner);
}

ordered_json to_json(const Pruner& pruner, const SimulateArguments& arguments, const Cost& total,
                     ordered_json epochs) {
  const PrunerOptions& options = pruner.options();
  ordered_json out = {{"score", runs::spec_to_json(options.score.value())},
                      {"policy", runs::spec_to_json(options.policy)},
                      {"num_samples", options.num_samples},
                      {"num_epochs", options.num_epochs},
                      {"batch_size", arguments.batch_size},
                      {"delta", options.delta.value()},
                      {"seed", options.seed},
                      {"epochs", std::move(epochs)},
                      {"size", total.size},
                      {"pruned_share", pruner.pruned_share()},
                      {"plan_seconds", total.plan_seconds},
                      {"observe_seconds", total.observe_seconds},
                      {"ns_per_sample", total.ns_per_sample()},
                      {"num_observations", pruner.num_observations()},
                      {"num_skipped_observations", pruner.num_skipped_observations()},
                      {"num_scored", pruner.num_scored()}};
  if (options.target_prune) out["target_prune"] = *options.target_prune;
  if (options.homogeneous_batch_size > 0) out["homogeneous"] = true;
  return out;
}

PrunerOptions options_of(const SimulateArguments& arguments) {
  const SpecChoice spec = arguments.spec.choose();
  // The ranks share a step of as many samples as all their batches have together.
  const std::size_t homogeneous_size =
      arguments.homogeneous ? arguments.batch_size * std::max<std::size_t>(1, arguments.num_ranks)
                            : 0;
  return {.num_samples = arguments.num_samples,
          .num_epochs = arguments.num_epochs,
          .policy = spec.policy.value(),
          .score = spec.score,
          .delta = arguments.delta,
          .seed = arguments.seed,
          .homogeneous_batch_size = homogeneous_size,
          .target_prune = arguments.target_prune,
          .threads = arguments.num_threads};
}

void simulate(const SimulateArguments& arguments) {
  const PrunerOptions options = options_of(arguments);
  if (arguments.num_ranks > 0) {
    if (!arguments.save.empty()) throw UsageError("--save does not go with --ranks");
    simulate_ranks({.options = options,
                    .layout = as_usage([&] {
                      return arguments.layout.empty() ? Layout::automatic
                                                      : parse_layout(arguments.layout);
                    }),
                    .num_ranks = arguments.num_ranks,
                    .batch_size = arguments.batch_size,
                    .json = arguments.json});
    return;
  }
  if (!arguments.layout.empty()) throw UsageError("--layout goes with --ranks only");
  if (arguments.num_samples > kMaxSamples) {
    throw UsageError(fmt::format("--samples must be in [1, {}] without --ranks, got {}",
                                 kMaxSamples, arguments.num_samples));
  }
  if (!arguments.save.empty()) check_replaceable(arguments.save);
  // Score, order, difficulty and losses of every sample.
  detail::require_memory(20.0 * static_cast<double>(arguments.num_samples),
                         fmt::format("--samples {}", arguments.num_samples));
  Simulation simulation = as_usage([&] { return Simulation(options, arguments.batch_size); });
  Pruner& pruner = simulation.pruner();
  if (!arguments.json) print(introduction(pruner, arguments.batch_size) + std::string(kHeader));

  Cost total;
  ordered_json epochs = ordered_json::array();
  Progress progress(arguments.num_epochs);
  for (std::uint64_t epoch = 0; epoch < arguments.num_epochs; ++epoch) {
    progress.show(epoch, fmt::format("epoch {} of {}", epoch, arguments.num_epochs));
    const Cost cost = simulation.run_epoch(epoch);
    total += cost;
    progress.clear();
    if (arguments.json) {
      epochs.push_back(epoch_json(*pruner.plan(), cost));
    } else {
      print(epoch_row(*pruner.plan(), cost));
    }
  }
  if (!arguments.save.empty()) pruner.save(arguments.save);
  print(arguments.json ? format_json(to_json(pruner, arguments, total, std::move(epochs)))
                       : conclusion(pruner, total));
}

}  // namespace

void add_simulate(CLI::App& program) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App& command =
      *program.add_subcommand("simulate", "Run a pruner on a synthetic loss landscape");
  add_count(command, "--samples", arguments->num_samples, {1, kMaxSamplesOfRanks},
            "size of the data set");
  add_count(command, "--epochs", arguments->num_epochs, {1, 1'000'000}, "epochs of the run");
  add_count(command, "--batch-size", arguments->batch_size, {1, kMaxSamples}, "samples per batch");
  add_delta(command, arguments->delta);
  add_count(command, "--seed", arguments->seed, {}, "seed of all random choices");
  command.add_flag("--homogeneous", arguments->homogeneous,
                   "every batch holds samples of one weight");
  add_share(command, "--target-prune", arguments->target_prune,
            "share of the whole run to prune; sets the prune ratio of every epoch");
  add_path(command, "--save", arguments->save,
           "write the state at the end to this file, for inspect")
      .type_name("FILE");
  add_count(command, "--ranks", arguments->num_ranks, {0, kMaxSimulatedRanks},
            "show instead what this many processes would exchange and keep");
  command
      .add_option("--layout", arguments->layout,
                  "with --ranks: automatic, replicated or sharded (default: automatic)")
      ->type_name("NAME");
  add_count(command, "--threads", arguments->num_threads, {1, 1024},
            "processor cores for planning an epoch; no plan depends on it");
  command.add_flag("--json", arguments->json, "print JSON, not a table");
  arguments->spec.add_policy(command, "infobatch");
  arguments->spec.add_score(command, "batch-loss");
  command.footer(
      R"(Every sample has a difficulty, log-normally distributed; losses fall over the run, with noise.
Each epoch is planned, its batches are observed one by one, and the cost of both is shown;
making up the losses is not timed. The score sees mean losses of batches; sample-loss sees
one loss per sample.
With --ranks the ranks run as threads on at most 2^18 samples, and what they exchange and
keep is shown for all samples, up to 1e10.

)" + describe_policies() +
      "\n" + describe_scores() +
      R"(
Example:
  tamis simulate --samples 1e6 --policy seta --groups 5 --save run.safetensors
  tamis simulate --samples 1e10 --ranks 8 --epochs 4
)");
  command.callback([arguments] { simulate(*arguments); });
}

}  // namespace tamis::program
