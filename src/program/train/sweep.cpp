// tamis sweep: one option of a method at several values, times seeds.
#include "training/trainer/sweep.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "program/commands.h"
#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/train/comparison_run.h"
#include "program/train/training_flags.h"

namespace tamis::cli {

namespace {

using training::Comparison;
using training::ComparisonConfig;
using training::Sweep;

struct SweepArguments {
  TrainingFlags flags;
  ComparisonFlags comparison;
  std::string method;
  std::string vary;
};

ComparisonConfig new_config(const SweepArguments& arguments, const Sweep& sweep) {
  const training::Preset& preset = arguments.flags.preset() != nullptr
                                       ? *arguments.flags.preset()
                                       : training::registered_presets().front();
  const TrainingChoice choice = arguments.flags.choose(&preset);
  const ComparisonFlags& flags = arguments.comparison;
  ComparisonConfig config{.shared = choice.config,
                          .methods = {},
                          .seeds = flags.seeds.empty() ? preset.seeds : flags.seeds,
                          .baseline = flags.baseline.empty() ? "full" : flags.baseline};
  as_usage([&] {
    config.methods.push_back(parse_method(config.baseline, choice.options));
    for (auto& method : sweep_methods(sweep, choice.options)) {
      config.methods.push_back(std::move(method));
    }
    check_used(choice.options, config.methods);
    validate(config);
    return 0;
  });
  return config;
}

void show(Comparison comparison, const training::DataSplits& data,
          const SweepArguments& arguments) {
  const training::Summary summary =
      run_comparison(comparison, data,
                     {.command = "sweep",
                      .lines = !arguments.comparison.quiet && !arguments.comparison.json,
                      .live = !arguments.comparison.quiet});
  if (!arguments.comparison.json) {
    print(describe_result(comparison, summary, arguments.comparison.quiet));
    return;
  }
  training::Json json = to_json(summary);
  json["sweep"] = to_json(training::read_sweep(comparison.path()));
  print(format_json(json));
}

void resume(const SweepArguments& arguments) {
  arguments.comparison.check_resume_alone("sweep", arguments.flags.is_any_given() ||
                                                       !arguments.method.empty() ||
                                                       !arguments.vary.empty());
  training::read_sweep(arguments.comparison.resume);  // a plain comparison is not a sweep
  Comparison comparison = Comparison::open(arguments.comparison.resume);
  const auto data = training::load_run_data(comparison.config().shared.data);
  show(std::move(comparison), *data, arguments);
}

void sweep(const SweepArguments& arguments) {
  if (!arguments.comparison.resume.empty()) return resume(arguments);
  if (arguments.vary.empty()) throw UsageError("--vary is required; see tamis sweep --help");
  const std::string method = arguments.method.empty() ? "bls-infobatch" : arguments.method;
  const Sweep values = as_usage([&] { return training::parse_sweep(method, arguments.vary); });
  const ComparisonConfig config = new_config(arguments, values);
  const std::filesystem::path folder =
      !arguments.comparison.out.empty()
          ? arguments.comparison.out
          : default_folder(
                {"sweep", values.option, config.shared.data.name, config.shared.model.name});
  // Data first: a sweep whose data are missing must not leave a folder behind.
  const auto data = training::load_run_data(config.shared.data);
  // Before the folder is touched.
  const Sweep all =
      arguments.comparison.overwrite ? values : training::extend_sweep(folder, values);
  Comparison comparison = Comparison::create(folder, config, arguments.comparison.existing());
  write_sweep(folder, all);
  show(std::move(comparison), *data, arguments);
}

}  // namespace

void add_sweep(CLI::App& program) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App& command = *program.add_subcommand(
      "sweep", "Train with several values of one option, and show what they change");
  command.add_option("--method", arguments->method, "which method (default: bls-infobatch)")
      ->type_name("NAME");
  command
      .add_option("--vary", arguments->vary,
                  "an option of its score or policy, or delta, and the values: alpha=0.5,0.7,0.9")
      ->type_name("OPTION=VALUE,...");
  arguments->comparison.add(command,
                            {.noun = "sweep",
                             .varied = "value",
                             .baseline = "method that all values are compared with (default: full)",
                             .default_folder = "runs/sweep-OPTION-DATA-MODEL"});
  arguments->flags.add(command, false);
  command.footer(
      "A comparison, see tamis compare, whose methods differ in one option. The same command\n"
      "again, or --resume, continues where it stopped; values and seeds can be added. tamis\n"
      "report FOLDER draws accuracy and pruned share against the option.\n\n" +
      describe_methods() + "\n" + describe_presets() +
      "\nExamples:\n"
      "  tamis sweep --vary alpha=0,0.3,0.5,0.7,0.9 --seeds 0 1 2 --out runs/alpha\n"
      "  tamis sweep --method bls-seta --vary prune-ratio=0.1,0.3,0.5\n"
      "Exit code: 130 or 143 after Ctrl-C or SIGTERM.\n");
  command.callback([arguments] { sweep(*arguments); });
}

}  // namespace tamis::cli
