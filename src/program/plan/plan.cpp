// tamis plan: which samples a policy would use in one epoch, and with which weights.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/commands.h"
#include "program/shared/arguments.h"
#include "program/shared/json_input.h"
#include "program/shared/output.h"
#include "program/shared/spec_flags.h"
#include "program/shared/table.h"
#include "tamis/epoch_plan.h"
#include "tamis/method.h"
#include "tamis/pruner.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;

struct PlanArguments {
  std::string scores;
  SpecFlags spec;
  std::uint64_t num_epochs = 100;
  std::uint64_t epoch = 0;
  std::optional<double> delta;
  std::uint64_t seed = 0;
  std::uint64_t homogeneous_batch_size = 0;
  std::optional<double> min_per_class;
  std::string labels;
  bool json = false;
};

// A pruner that has these scores: sample-loss keeps what it is shown.
Pruner make_pruner(const PlanArguments& arguments, std::span<const float> scores) {
  PrunerOptions options{.num_samples = scores.size(),
                        .num_epochs = arguments.num_epochs,
                        .policy = arguments.spec.choose().policy.value(),
                        .score = Spec{"sample-loss"},
                        .delta = arguments.delta,
                        .seed = arguments.seed,
                        .homogeneous_batch_size = arguments.homogeneous_batch_size,
                        .min_per_class = arguments.min_per_class.value_or(0.0)};
  if (!arguments.labels.empty()) options.labels = read_labels(arguments.labels);
  Pruner pruner = as_usage([&] { return Pruner(options); });
  std::vector<std::uint32_t> scored;
  std::vector<float> losses;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) continue;
    scored.push_back(static_cast<std::uint32_t>(i));
    losses.push_back(scores[i]);
  }
  if (!scored.empty()) pruner.observe(scored, losses);
  return pruner;
}

ordered_json groups_json(const std::vector<ScoreGroup>& groups) {
  ordered_json array = ordered_json::array();
  for (const ScoreGroup& group : groups) {
    array.push_back(
        {{"size", group.size}, {"low", group.low}, {"high", group.high}, {"center", group.center}});
  }
  return array;
}

ordered_json to_json(const EpochPlan& plan, const std::string& policy) {
  const SelectionReport& report = plan.selection().report;
  ordered_json out = {{"policy", policy},          {"epoch", plan.epoch()},
                      {"pruning", plan.pruning()}, {"num_samples", plan.num_samples()},
                      {"size", plan.size()},       {"num_pruned", plan.num_pruned()}};
  if (report.threshold) out["threshold"] = *report.threshold;
  if (report.num_below) out["num_below"] = *report.num_below;
  if (report.num_kept_of_below) out["num_kept_of_below"] = *report.num_kept_of_below;
  if (!report.groups.empty()) out["groups"] = groups_json(report.groups);
  if (report.window_begin && report.window_end) {
    out["window"] = {*report.window_begin, *report.window_end};
  }
  if (report.num_restored) out["num_restored"] = *report.num_restored;
  if (report.within_group_sum_of_squares) {
    out["within_group_sum_of_squares"] = *report.within_group_sum_of_squares;
  }
  ordered_json::array_t indices(plan.order().begin(), plan.order().end());
  ordered_json::array_t weights;
  weights.reserve(plan.size());
  for (std::size_t j = 0; j < plan.size(); ++j) weights.emplace_back(plan.weight(j));
  out["indices"] = std::move(indices);
  out["weights"] = std::move(weights);
  return out;
}

std::string groups_table(const SelectionReport& report) {
  std::vector<std::vector<std::string>> rows = {{"group", "size", "low", "high", "center", "used"}};
  for (std::size_t k = 0; k < report.groups.size(); ++k) {
    const ScoreGroup& group = report.groups[k];
    const bool used = k >= report.window_begin.value_or(0) && k < report.window_end.value_or(0);
    rows.push_back({fmt::format("{}", k), with_commas(group.size), fmt::format("{:.6g}", group.low),
                    fmt::format("{:.6g}", group.high), fmt::format("{:.6g}", group.center),
                    used ? "yes" : "no"});
  }
  return "\n" + format_table(rows);
}

std::string first_samples(const EpochPlan& plan) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t j = 0; j < std::min(plan.size(), kShown); ++j) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", plan.sample(j));
    if (plan.weight(j) != 1.0F) text += fmt::format(" (x{:.4g})", plan.weight(j));
  }
  return plan.size() > kShown ? text + " ..." : text;
}

std::string summary(const EpochPlan& plan, const Spec& policy) {
  const SelectionReport& report = plan.selection().report;
  FactList facts;
  facts.add("policy", to_text(policy));
  facts.add("epoch", fmt::format("{} ({})", plan.epoch(), plan.pruning() ? "pruned" : "annealing"));
  facts.add("samples used",
            fmt::format("{} of {}", with_commas(plan.size()), with_commas(plan.num_samples())));
  facts.add("left out", fmt::format("{} ({:.1f} %)", with_commas(plan.num_pruned()),
                                    100.0 * static_cast<double>(plan.num_pruned()) /
                                        static_cast<double>(plan.num_samples())));
  if (report.threshold) facts.add("mean score", fmt::format("{:.6g}", *report.threshold));
  if (report.num_below && report.num_kept_of_below) {
    facts.add("below the mean",
              fmt::format("{}, {} of them used, with weight {:.4g}", with_commas(*report.num_below),
                          with_commas(*report.num_kept_of_below), plan.selection().rescale));
  }
  if (report.num_restored) {
    facts.add("put back", fmt::format("{}, for classes and whole batches; weight {:.4g}",
                                      with_commas(*report.num_restored), plan.selection().rescale));
  }
  if (report.window_begin && report.window_end) {
    facts.add("groups used", fmt::format("{} to {} of {}", *report.window_begin,
                                         *report.window_end - 1, report.groups.size()));
  }
  if (report.within_group_sum_of_squares) {
    facts.add("sum of squares",
              fmt::format("{:.6g} (within the groups)", *report.within_group_sum_of_squares));
  }
  facts.add("first samples", first_samples(plan));
  return facts.text() + (report.groups.empty() ? "" : groups_table(report));
}

void plan(const PlanArguments& arguments) {
  if (arguments.epoch >= arguments.num_epochs) {
    throw UsageError(fmt::format("--epoch must be below --epochs ({}), got {}",
                                 arguments.num_epochs, arguments.epoch));
  }
  (void)arguments.spec.choose();  // a wrong flag is told before a long file is read
  if (arguments.labels.empty() != !arguments.min_per_class) {
    throw UsageError("--min-per-class and --labels go together");
  }
  const Pruner pruner = make_pruner(arguments, read_scores(arguments.scores));
  const EpochPlan result = pruner.preview(arguments.epoch);
  const Spec& policy = pruner.options().policy;
  print(arguments.json ? format_json(to_json(result, policy.name)) : summary(result, policy));
}

}  // namespace

void add_plan(CLI::App& program) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App& command =
      *program.add_subcommand("plan", "Show which samples a policy uses in one epoch");
  command
      .add_option("--scores", arguments->scores,
                  "JSON file with the scores: an array, null where there is none, or what\n"
                  "replay writes; - for standard input")
      ->required()
      ->type_name("FILE");
  add_count(command, "--epochs", arguments->num_epochs, {.min = 1}, "epochs of the whole run");
  add_count(command, "--epoch", arguments->epoch, {}, "epoch to plan, from 0");
  add_delta(command, arguments->delta);
  add_count(command, "--seed", arguments->seed, {}, "seed of all random choices");
  add_count(command, "--homogeneous-batch-size", arguments->homogeneous_batch_size,
            {.max = kMaxSamples}, "length of runs of samples with the same weight; 0: any order");
  add_share(command, "--min-per-class", arguments->min_per_class,
            "least share of every class; needs --labels");
  add_path(command, "--labels", arguments->labels,
           "JSON file with the class of every sample, an array of integers")
      .type_name("FILE");
  command.add_flag("--json", arguments->json, "print the whole plan as JSON, not a summary");
  arguments->spec.add_policy(command);
  command.footer(
      R"(The same scores, policy, epoch and seed always give the same plan. An epoch e is pruned while
e + 1 <= delta * epochs. Indices come in training order; a weight multiplies the loss of its
sample.

)" + describe_policies() +
      R"(
Example:
  tamis plan --scores scores.json --policy infobatch --prune-ratio 0.5 --epoch 3 --json
)");
  command.callback([arguments] { plan(*arguments); });
}

}  // namespace tamis::program
