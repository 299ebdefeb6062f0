// tamis compare: methods times seeds, and a table.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/agreement.h"
#include "program/commands.h"
#include "program/compare/compare_command.h"
#include "program/shared/arguments.h"
#include "program/train/comparison_run.h"
#include "program/train/team_flags.h"
#include "program/train/training_flags.h"
#include "training/trainer/budget.h"

namespace tamis::program {

namespace {

using runs::Comparison;

struct CompareArguments {
  TrainingFlags flags;
  TeamFlags team;
  CommandFlags command;
  ComparisonFlags comparison;
  std::vector<std::string> methods;
  bool equal_budget = false;
};

// The methods of --equal-budget, then the others.
std::vector<std::string> with_budget_rows(const std::vector<std::string>& methods) {
  std::vector<std::string> all = training::budget_methods();
  for (const std::string& method : methods) {
    if (std::find(all.begin(), all.end(), method) == all.end()) all.push_back(method);
  }
  return all;
}

// The settings that the runs share, and the plan with the methods.
struct NewComparison {
  training::RunConfig shared;
  runs::ComparisonPlan plan;
};

NewComparison new_comparison(const CompareArguments& arguments) {
  const training::Preset& preset = arguments.flags.preset() != nullptr
                                       ? *arguments.flags.preset()
                                       : training::registered_presets().front();
  const TrainingChoice choice = arguments.flags.choose(&preset);
  const ComparisonFlags& flags = arguments.comparison;
  const auto& chosen = arguments.methods.empty() ? preset.methods : arguments.methods;
  const auto names = arguments.equal_budget ? with_budget_rows(chosen) : chosen;
  const auto plan = as_usage([&] {
    std::vector<Method> methods;
    for (const std::string& name : names) {
      methods.push_back(training::parse_trained_method(name, choice.options));
      training::check_budget(methods.back(), choice.config.training.epochs);
    }
    check_used(choice.options, methods);
    auto made = training::make_plan(
        choice.config, methods, flags.seeds.empty() ? preset.seeds : flags.seeds,
        flags.baseline.empty() ? default_baseline(names) : flags.baseline);
    made.reach = flags.reach;
    return made;
  });
  return {choice.config, plan};
}

Comparison open_comparison(const CompareArguments& arguments) {
  arguments.comparison.check_resume_alone("comparison", arguments.flags.is_any_given() ||
                                                            !arguments.methods.empty() ||
                                                            arguments.equal_budget);
  return Comparison::open(arguments.comparison.resume);
}

std::string folder_of(const CompareArguments& arguments, const training::RunConfig& shared) {
  if (!arguments.comparison.out.empty()) return arguments.comparison.out;
  const training::Preset* const preset = arguments.flags.preset();
  return preset != nullptr ? default_folder({std::string(preset->name)})
                           : default_folder({"compare", shared.data.name, shared.model.name});
}

void run(const Comparison& comparison, const training::DataSplits& data,
         const CompareArguments& arguments, const training::Team& team) {
  run_and_print(comparison, data,
                {.command = "compare",
                 .flags = arguments.comparison,
                 .team = team,
                 .layout = arguments.team.chosen_layout()});
}

// Rank 0 opens or creates the comparison, the others join it.
Comparison share(const training::Team& team, const std::string& path,
                 const std::function<Comparison()>& open) {
  std::optional<Comparison> comparison;
  detail::together(*team.communicator(), [&] {
    if (team.is_first()) comparison = open();
  });
  return team.is_first() ? std::move(*comparison) : Comparison::join(path);
}

bool uses_command(const CompareArguments& arguments) {
  return !arguments.command.command.empty() || is_command_comparison(arguments.comparison.resume);
}

void compare(const CompareArguments& arguments) {
  if (uses_command(arguments)) {
    if (arguments.flags.is_any_given() || arguments.equal_budget) {
      throw UsageError(
          "--command takes no settings of the training: its program has settings of its own");
    }
    compare_with_command(arguments.command, arguments.comparison, arguments.methods);
    return;
  }
  const training::Team team = arguments.team.connect();
  if (!arguments.comparison.resume.empty()) {
    const Comparison comparison =
        share(team, arguments.comparison.resume, [&] { return open_comparison(arguments); });
    run(comparison, *training::load_run_data(training::shared_config(comparison).data), arguments,
        team);
    return;
  }
  const auto [shared, plan] = new_comparison(arguments);
  // Data first: a comparison whose data are missing must not leave a folder behind.
  const auto data = training::load_run_data(shared.data);
  const std::string folder = folder_of(arguments, shared);
  const Comparison comparison = share(team, folder, [&plan = plan, &folder, &arguments] {
    return Comparison::create(folder, plan, arguments.comparison.existing());
  });
  run(comparison, *data, arguments, team);
}

}  // namespace

void add_compare(CLI::App& program) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App& command = *program.add_subcommand(
      "compare", "Train with several methods and seeds, and compare them fairly");
  add_methods_flag(command, arguments->methods,
                   "what to compare, see below (default: those of the preset)");
  command.add_flag(
      "--equal-budget", arguments->equal_budget,
      "begin with what trains on as few samples without choosing among them: fewer-epochs and\n"
      "random-dynamic, with and without annealing; needs --target-prune");
  arguments->command.add(command);
  arguments->comparison.add(
      command,
      {.noun = "comparison",
       .varied = "method",
       .baseline = "method that the others are compared with (default: full, else the first)",
       .default_folder = "runs/PRESET or runs/compare-DATA-MODEL"});
  arguments->team.add(command);
  arguments->flags.add(command, false);
  command.footer(
      "For every seed all methods begin with the same weights and see the data in the same order\n"
      "until they prune differently. " +
      describe_comparison() + "\n" + describe_command() + "\n" + describe_methods() + "\n" +
      describe_presets() +
      "\nExamples:\n"
      "  tamis compare --preset quick\n"
      "  tamis compare --methods full bls-infobatch:alpha=0.5 bls-infobatch:alpha=0.9 --seeds 0 1 "
      "2\n"
      "  tamis compare --target-prune 0.5 --equal-budget --methods infobatch bls-infobatch --reach "
      "0.88\n"
      "  tamis compare --command \"python train.py\" --methods full bls-infobatch\n"
      "Exit code: 130 or 143 after Ctrl-C or SIGTERM.\n");
  command.callback([arguments] { compare(*arguments); });
}

}  // namespace tamis::program
