// winnow sweep: one option of a method at several values, times seeds.
#include "training/sweep.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "comparison_run.h"
#include "output.h"
#include "training_flags.h"

namespace winnow::cli {

namespace {

using training::Comparison;
using training::ComparisonConfig;
using training::RunFolder;
using training::Sweep;

struct SweepArguments {
  TrainingFlags flags;
  std::string method = "bls-infobatch";
  std::string vary;
  std::vector<std::uint64_t> seeds;
  std::string baseline = "full";
  std::string out;
  std::string resume;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;
};

ComparisonConfig new_config(const SweepArguments& arguments, const Sweep& sweep) {
  const training::Preset& preset = arguments.flags.preset() != nullptr
                                       ? *arguments.flags.preset()
                                       : training::registered_presets().front();
  const TrainingChoice choice = arguments.flags.choose(&preset);
  ComparisonConfig config{.shared = choice.config,
                          .methods = {},
                          .seeds = arguments.seeds.empty() ? preset.seeds : arguments.seeds,
                          .baseline = arguments.baseline};
  as_usage([&] {
    config.methods.push_back(training::parse_method(arguments.baseline, choice.options));
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
  const training::Summary summary = run_comparison(
      comparison, data,
      {.command = "sweep", .lines = !arguments.quiet && !arguments.json, .live = !arguments.quiet});
  if (!arguments.json) {
    print(describe_result(comparison, summary, arguments.quiet));
    return;
  }
  training::Json json = to_json(summary);
  json["sweep"] = to_json(training::read_sweep(comparison.path()));
  print(format_json(json));
}

void resume(const SweepArguments& arguments, const CLI::App& command) {
  bool has_others = arguments.flags.is_any_given() || arguments.overwrite;
  for (const char* const flag : {"--method", "--vary", "--seeds", "--baseline", "--out"}) {
    has_others = has_others || command.count(flag) > 0;
  }
  if (has_others) {
    throw UsageError(
        "--resume takes all settings from the sweep; only --json and --quiet go with it");
  }
  training::read_sweep(arguments.resume);  // a plain comparison is not a sweep
  Comparison comparison = Comparison::open(arguments.resume);
  const auto data = training::load_run_data(comparison.config().shared.data);
  show(std::move(comparison), data, arguments);
}

void sweep(const SweepArguments& arguments, const CLI::App& command) {
  if (!arguments.resume.empty()) return resume(arguments, command);
  if (arguments.vary.empty()) throw UsageError("--vary is required; see winnow sweep --help");
  const Sweep values =
      as_usage([&] { return training::parse_sweep(arguments.method, arguments.vary); });
  const ComparisonConfig config = new_config(arguments, values);
  const std::filesystem::path folder =
      !arguments.out.empty() ? arguments.out
                             : default_folder({"sweep", values.option, config.shared.data.name,
                                               config.shared.model.name});
  // Data first: a sweep whose data are missing must not leave a folder behind.
  const auto data = training::load_run_data(config.shared.data);
  // Before the folder is touched.
  const Sweep all = arguments.overwrite ? values : training::extend_sweep(folder, values);
  Comparison comparison = Comparison::create(
      folder, config,
      arguments.overwrite ? RunFolder::Existing::overwrite : RunFolder::Existing::refuse);
  write_sweep(folder, all);
  show(std::move(comparison), data, arguments);
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
  command.add_option("--seeds", arguments->seeds, "one run per value and seed (default: 0 1 2)")
      ->type_name("COUNT...");
  command
      .add_option("--baseline", arguments->baseline,
                  "method that all values are compared with (default: full)")
      ->type_name("NAME");
  command
      .add_option("--out", arguments->out,
                  "folder of the sweep (default: runs/sweep-OPTION-DATA-MODEL)")
      ->type_name("FOLDER");
  command.add_option("--resume", arguments->resume, "continue the sweep in this folder")
      ->type_name("FOLDER");
  command.add_flag("--overwrite", arguments->overwrite,
                   "replace a sweep that is in the folder, with all its runs");
  command.add_flag("--json", arguments->json, "print the summary as JSON");
  command.add_flag("--quiet", arguments->quiet, "print the table only");
  arguments->flags.add(command, false);
  command.footer(
      "A comparison, see winnow compare, whose methods differ in one option. The same command\n"
      "again, or --resume, continues where it stopped; values and seeds can be added. winnow\n"
      "report FOLDER draws accuracy and pruned share against the option.\n\n" +
      describe_methods() + "\n" + describe_presets() +
      "\nExamples:\n"
      "  winnow sweep --vary alpha=0,0.3,0.5,0.7,0.9 --seeds 0 1 2 --out runs/alpha\n"
      "  winnow sweep --method bls-seta --vary prune-ratio=0.1,0.3,0.5\n"
      "Exit code: 130 or 143 after Ctrl-C or SIGTERM.\n");
  command.callback([arguments, &command] { sweep(*arguments, command); });
}

}  // namespace winnow::cli
