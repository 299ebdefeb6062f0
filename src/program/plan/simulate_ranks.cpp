#include "program/plan/simulate_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "program/analyze/loss_landscape.h"
#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/shared/spec_flags.h"
#include "program/shared/table.h"
#include "tamis/rank_cost.h"
#include "tamis/registry.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kSimulatedSamples = std::uint64_t{1} << 18U;

struct EpochCost {
  std::uint64_t epoch = 0;
  std::uint64_t num_selected = 0;
  RankCost rank;
};

// One rank's epochs on the small data set; returns what rank 0 saw.
std::vector<EpochCost> run_rank(const PrunerOptions& options, const RankSimulation& simulation,
                                const std::shared_ptr<Communicator>& communicator) {
  Pruner pruner(options, communicator);
  const LossLandscape landscape(options.num_samples, options.num_epochs, options.seed);
  std::vector<EpochCost> costs;
  std::vector<std::uint32_t> samples;
  std::vector<float> losses;
  for (std::uint64_t epoch = 0; epoch < options.num_epochs; ++epoch) {
    const std::uint64_t sent = communicator->bytes_sent();
    const std::uint64_t received = communicator->bytes_received();
    const EpochPlan& plan = pruner.start_epoch(epoch);
    costs.push_back({.epoch = epoch,
                     .num_selected = plan.num_selected(),
                     .rank = {.bytes_sent = communicator->bytes_sent() - sent,
                              .bytes_received = communicator->bytes_received() - received}});
    for (std::size_t begin = 0; begin < plan.size(); begin += simulation.batch_size) {
      const std::size_t count = std::min<std::size_t>(simulation.batch_size, plan.size() - begin);
      samples.clear();
      for (std::size_t j = begin; j < begin + count; ++j) {
        samples.push_back(static_cast<std::uint32_t>(plan.sample(j)));
      }
      losses.resize(count);
      landscape.losses(samples, epoch, losses);
      observe_batch(pruner, begin, losses, mean_of(losses));
    }
  }
  return costs;
}

std::vector<EpochCost> run_ranks(const PrunerOptions& options, const RankSimulation& simulation) {
  const auto communicators = make_thread_ranks(simulation.num_ranks);
  std::vector<std::vector<EpochCost>> costs(simulation.num_ranks);
  std::vector<std::exception_ptr> errors(simulation.num_ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < communicators.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        costs[r] = run_rank(options, simulation, communicators[r]);
      } catch (...) {
        errors[r] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return costs[0];
}

// That the scorer keeps of one sample.
std::uint64_t bytes_per_score(const Scorer& scorer) {
  std::uint64_t bytes = 0;
  for (const ScorerArray& array : make_scorer(scorer.spec(), 1)->arrays()) {
    bytes += array.bytes.size();
  }
  return bytes;
}

// From the small data set to the whole one.
void scale(const RankSimulation& simulation, Layout layout, const Scorer& scorer,
           std::uint64_t num_simulated, std::vector<EpochCost>& costs) {
  std::uint64_t before = 0;
  for (EpochCost& cost : costs) {
    const double share =
        static_cast<double>(cost.num_selected) / static_cast<double>(num_simulated);
    cost.num_selected =
        static_cast<std::uint64_t>(share * static_cast<double>(simulation.options.num_samples));
    EpochShape shape{.num_samples = simulation.options.num_samples,
                     .num_selected = cost.num_selected,
                     .num_ranks = simulation.num_ranks,
                     .batch_size = simulation.batch_size,
                     .bytes_per_score = bytes_per_score(scorer),
                     .observed = scorer.needs()};
    if (layout == Layout::sharded) {
      cost.rank.memory = sharded_memory(shape);
      const std::uint64_t growth = sharded_growth(simulation.options.num_samples, num_simulated);
      cost.rank.bytes_sent += growth;
      cost.rank.bytes_received += growth;
      continue;
    }
    // The losses of an epoch are exchanged when the next one starts; before the first there are
    // none.
    const std::uint64_t memory = predict_replicated(shape, cost.epoch).memory;
    shape.num_selected = before;
    cost.rank = predict_replicated(shape, cost.epoch);
    cost.rank.memory = memory;
    before = cost.num_selected;
  }
}

ordered_json to_json(const EpochCost& cost) {
  return {{"epoch", cost.epoch},
          {"size", cost.num_selected},
          {"bytes_sent", cost.rank.bytes_sent},
          {"bytes_received", cost.rank.bytes_received},
          {"memory", cost.rank.memory},
          {"bytes_of_pairs", 8 * cost.num_selected}};
}

std::string to_row(const EpochCost& cost) {
  return fmt::format("{:>5}  {:>15}  {:>14}  {:>14}  {:>14}  {:>17}\n", cost.epoch,
                     with_commas(cost.num_selected), with_commas(cost.rank.bytes_sent),
                     with_commas(cost.rank.bytes_received), with_commas(cost.rank.memory),
                     with_commas(8 * cost.num_selected));
}

}  // namespace

void simulate_ranks(const RankSimulation& simulation) {
  const std::uint64_t num_samples = simulation.options.num_samples;
  Layout layout = simulation.layout;
  if (layout == Layout::automatic) {
    layout = num_samples <= kMaxReplicated ? Layout::replicated : Layout::sharded;
  }
  const std::uint64_t kept =
      layout == Layout::sharded ? num_samples / simulation.num_ranks + 1 : num_samples;
  if (kept > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(
        fmt::format("--samples {} is too much for {} ranks {}: one rank keeps the "
                    "scores of at most 2^32 - 1 samples",
                    num_samples, simulation.num_ranks, to_text(layout)));
  }
  PrunerOptions options = simulation.options;
  options.num_samples = static_cast<std::size_t>(std::min(num_samples, kSimulatedSamples));
  options.layout = layout;
  const Pruner probe(options);
  std::vector<EpochCost> costs = run_ranks(options, simulation);
  scale(simulation, layout, probe.scorer(), options.num_samples, costs);

  if (simulation.json) {
    ordered_json epochs = ordered_json::array();
    for (const EpochCost& cost : costs) epochs.push_back(to_json(cost));
    print(format_json({{"num_samples", num_samples},
                       {"num_ranks", simulation.num_ranks},
                       {"layout", to_text(layout)},
                       {"batch_size", simulation.batch_size},
                       {"num_simulated", options.num_samples},
                       {"epochs", std::move(epochs)}}));
    return;
  }
  print(fmt::format(
      "{} samples on {}, {}, batches of {} per rank; selected as {} samples are\n"
      "bytes of one rank per epoch; pairs: an index and a loss per sample, sent to every rank\n\n"
      "epoch     samples used            sent        received          memory"
      "              pairs\n",
      with_commas(num_samples), counted(simulation.num_ranks, "rank"), to_text(layout),
      simulation.batch_size, with_commas(options.num_samples)));
  for (const EpochCost& cost : costs) print(to_row(cost));
}

}  // namespace tamis::program
