// tamis compare: methods times seeds, and a table.
#include "training/trainer/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/agreement.h"
#include "program/commands.h"
#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/train/comparison_run.h"
#include "program/train/team_flags.h"
#include "program/train/training_flags.h"

namespace tamis::cli {

namespace {

using training::Comparison;
using training::ComparisonConfig;

struct CompareArguments {
  TrainingFlags flags;
  TeamFlags team;
  ComparisonFlags comparison;
  std::vector<std::string> methods;
};

ComparisonConfig new_config(const CompareArguments& arguments) {
  const training::Preset& preset = arguments.flags.preset() != nullptr
                                       ? *arguments.flags.preset()
                                       : training::registered_presets().front();
  const TrainingChoice choice = arguments.flags.choose(&preset);
  const auto& names = arguments.methods.empty() ? preset.methods : arguments.methods;
  ComparisonConfig config{
      .shared = choice.config,
      .methods = {},
      .seeds = arguments.comparison.seeds.empty() ? preset.seeds : arguments.comparison.seeds,
      .baseline = arguments.comparison.baseline};
  as_usage([&] {
    for (const std::string& name : names) {
      config.methods.push_back(parse_method(name, choice.options));
    }
    check_used(choice.options, config.methods);
    for (const auto& method : config.methods) {
      check_reachable(method, choice.config.training.epochs);
    }
    if (config.baseline.empty()) {
      const bool has_full = std::find(names.begin(), names.end(), "full") != names.end();
      config.baseline = has_full ? "full" : config.methods.front().name;
    }
    validate(config);
    return 0;
  });
  return config;
}

Comparison open_comparison(const CompareArguments& arguments) {
  arguments.comparison.check_resume_alone(
      "comparison", arguments.flags.is_any_given() || !arguments.methods.empty());
  return Comparison::open(arguments.comparison.resume);
}

std::string folder_of(const CompareArguments& arguments, const ComparisonConfig& config) {
  if (!arguments.comparison.out.empty()) return arguments.comparison.out;
  const training::Preset* const preset = arguments.flags.preset();
  return preset != nullptr
             ? default_folder({std::string(preset->name)})
             : default_folder({"compare", config.shared.data.name, config.shared.model.name});
}

void run(Comparison comparison, const training::DataSplits& data, const CompareArguments& arguments,
         const training::Team& team) {
  const bool is_quiet = arguments.comparison.quiet || !team.is_first();
  const training::Summary summary =
      run_comparison(comparison, data,
                     {.command = "compare",
                      .lines = !is_quiet && !arguments.comparison.json,
                      .live = !is_quiet,
                      .team = team,
                      .layout = arguments.team.chosen_layout()});
  if (!team.is_first()) return;
  print(arguments.comparison.json
            ? format_json(to_json(summary))
            : describe_result(comparison, summary, arguments.comparison.quiet));
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

void compare(const CompareArguments& arguments) {
  const training::Team team = arguments.team.connect();
  if (!arguments.comparison.resume.empty()) {
    Comparison comparison =
        share(team, arguments.comparison.resume, [&] { return open_comparison(arguments); });
    const auto data = training::load_run_data(comparison.config().shared.data);
    run(std::move(comparison), *data, arguments, team);
    return;
  }
  const ComparisonConfig config = new_config(arguments);
  // Data first: a comparison whose data are missing must not leave a folder behind.
  const auto data = training::load_run_data(config.shared.data);
  const std::string folder = folder_of(arguments, config);
  run(share(team, folder,
            [&] { return Comparison::create(folder, config, arguments.comparison.existing()); }),
      *data, arguments, team);
}

}  // namespace

void add_compare(CLI::App& program) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App& command = *program.add_subcommand(
      "compare", "Train with several methods and seeds, and compare them fairly");
  command
      .add_option("--methods", arguments->methods,
                  "what to compare, see below (default: those of the preset)")
      ->type_name("NAME...");
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
      "until they prune differently. The same command again, or --resume, continues where it\n"
      "stopped: runs that are done are kept, methods and seeds can be added. Ends with a table of\n"
      "accuracy, difference to the baseline with its 95 % interval, pruned share, time and "
      "overhead.\n\n" +
      describe_methods() + "\n" + describe_presets() +
      "\nExamples:\n"
      "  tamis compare --preset quick\n"
      "  tamis compare --methods full bls-infobatch:alpha=0.5 bls-infobatch:alpha=0.9 --seeds 0 1 "
      "2\n"
      "Exit code: 130 or 143 after Ctrl-C or SIGTERM.\n");
  command.callback([arguments] { compare(*arguments); });
}

}  // namespace tamis::cli
