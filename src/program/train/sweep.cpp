// tamis sweep: one option of a method at several values, times seeds.
#include "runs/sweep.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "program/commands.h"
#include "program/shared/arguments.h"
#include "program/train/comparison_run.h"
#include "program/train/training_flags.h"

namespace tamis::program {

namespace {

using runs::Comparison;
using runs::Sweep;

struct SweepArguments {
  TrainingFlags flags;
  ComparisonFlags comparison;
  std::string method;
  std::string vary;
};

void show(const Comparison& comparison, const training::DataSplits& data,
          const SweepArguments& arguments) {
  run_and_print(comparison, data,
                {.command = "sweep",
                 .flags = arguments.comparison,
                 .more = {{"sweep", runs::to_json(runs::read_sweep(comparison.path()))}}});
}

void resume(const SweepArguments& arguments) {
  arguments.comparison.check_resume_alone("sweep", arguments.flags.is_any_given() ||
                                                       !arguments.method.empty() ||
                                                       !arguments.vary.empty());
  runs::read_sweep(arguments.comparison.resume);  // a plain comparison is not a sweep
  const Comparison comparison = Comparison::open(arguments.comparison.resume);
  show(comparison, *training::load_run_data(training::shared_config(comparison).data), arguments);
}

void sweep(const SweepArguments& arguments) {
  if (!arguments.comparison.resume.empty()) return resume(arguments);
  if (arguments.vary.empty()) throw UsageError("--vary is required; see tamis sweep --help");
  const std::string method = arguments.method.empty() ? "bls-infobatch" : arguments.method;
  const Sweep values = as_usage([&] { return runs::parse_sweep(method, arguments.vary); });
  const training::Preset& preset = arguments.flags.preset() != nullptr
                                       ? *arguments.flags.preset()
                                       : training::registered_presets().front();
  const TrainingChoice choice = arguments.flags.choose(&preset);
  const training::RunConfig& shared = choice.config;
  const ComparisonFlags& flags = arguments.comparison;
  const std::string baseline = flags.baseline.empty() ? "full" : flags.baseline;
  const auto plan = as_usage([&] {
    std::vector<Method> methods = {parse_method(baseline, choice.options)};
    for (auto& one : sweep_methods(values, choice.options)) methods.push_back(std::move(one));
    check_used(choice.options, methods);
    auto made = training::make_plan(shared, methods,
                                    flags.seeds.empty() ? preset.seeds : flags.seeds, baseline);
    made.reach = flags.reach;
    return made;
  });
  const std::filesystem::path folder =
      !flags.out.empty()
          ? flags.out
          : default_folder({"sweep", values.option, shared.data.name, shared.model.name});
  // Data first: a sweep whose data are missing must not leave a folder behind.
  const auto data = training::load_run_data(shared.data);
  // Before the folder is touched.
  const Sweep all = flags.overwrite ? values : runs::extend_sweep(folder, values);
  const Comparison comparison = Comparison::create(folder, plan, flags.existing());
  runs::write_sweep(folder, all);
  show(comparison, *data, arguments);
}

}  // namespace

void add_sweep(CLI::App& program) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App& command = *program.add_subcommand(
      "sweep", "Train with several values of one option, and show what they change");
  command.add_option("--method", arguments->method, "the method (default: bls-infobatch)")
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
      "report FOLDER draws the headline metric and pruned share against the option.\n\n" +
      describe_methods() + "\n" + describe_presets() +
      "\nExamples:\n"
      "  tamis sweep --vary alpha=0,0.3,0.5,0.7,0.9 --seeds 0 1 2 --out runs/alpha\n"
      "  tamis sweep --method bls-seta --vary prune-ratio=0.1,0.3,0.5\n"
      "Exit code: 130 or 143 after Ctrl-C or SIGTERM.\n");
  command.callback([arguments] { sweep(*arguments); });
}

}  // namespace tamis::program
