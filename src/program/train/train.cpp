// tamis train: one run, with checkpoints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/agreement.h"
#include "program/commands.h"
#include "program/compare/comparison_flags.h"
#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/shared/signals.h"
#include "program/shared/spec_flags.h"
#include "program/shared/table.h"
#include "program/shared/terminal.h"
#include "program/train/team_flags.h"
#include "program/train/training_flags.h"
#include "runs/summary.h"
#include "tamis/method.h"
#include "tamis/registry.h"
#include "training/trainer/budget.h"
#include "training/trainer/progress_line.h"
#include "training/trainer/trainer.h"

namespace tamis::program {

namespace {

using runs::RunFolder;
using training::RunConfig;

struct TrainArguments {
  TrainingFlags flags;
  TeamFlags team;
  std::string method;
  std::string score;
  std::string policy;
  std::string out;
  std::string resume;
  std::uint64_t num_recorded = 0;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;
};

std::string method_text(const TrainArguments& arguments) {
  if (arguments.policy.empty() && arguments.score.empty()) {
    return arguments.method.empty() ? "bls-infobatch" : arguments.method;
  }
  if (!arguments.method.empty()) {
    throw UsageError("--method already names a score and a policy; leave out --score and --policy");
  }
  if (arguments.policy.empty()) throw UsageError("--score needs --policy");
  const std::string score = arguments.score.empty()
                                ? std::string(find_policy(arguments.policy).default_score)
                                : arguments.score;
  return fmt::format("{}+{}", score, arguments.policy);
}

RunConfig new_config(const TrainArguments& arguments) {
  TrainingChoice choice = arguments.flags.choose();
  choice.config.num_recorded = arguments.num_recorded;
  choose_method(choice.config, as_usage([&] {
                  auto method =
                      training::parse_trained_method(method_text(arguments), choice.options);
                  check_used(choice.options, {&method, 1});
                  training::check_budget(method, choice.config.training.epochs);
                  return method;
                }));
  return choice.config;
}

RunConfig resumed_config(const TrainArguments& arguments) {
  const bool has_others = arguments.flags.is_any_given() || arguments.overwrite ||
                          !arguments.method.empty() || !arguments.score.empty() ||
                          !arguments.policy.empty() || !arguments.out.empty() ||
                          arguments.num_recorded > 0;
  if (has_others) {
    throw UsageError(
        "--resume takes all settings from the run; only --json and --quiet go with it");
  }
  if (!runs::is_run(arguments.resume)) {
    throw std::runtime_error(arguments.resume + ": holds no run (no config.json)");
  }
  return training::read_run_config(arguments.resume);
}

std::string introduction(training::Trainer& trainer) {
  const RunConfig& config = trainer.config();
  const std::size_t done = trainer.metrics().size();
  FactList facts;
  facts.add("method", fmt::format("{}: score {}, policy {}", config.method.name,
                                  to_text(config.method.score), to_text(config.method.policy)));
  facts.add("data", fmt::format("{}, {} training samples", config.data.name,
                                with_commas(trainer.pruner().options().num_samples)));
  facts.add("model",
            fmt::format("{}, {} parameters", config.model.name,
                        with_commas(static_cast<std::uint64_t>(trainer.num_parameters()))));
  facts.add("run", fmt::format("{}, batch size {}, seed {}, {}, {}{}",
                               counted(config.training.epochs, "epoch"), config.training.batch_size,
                               config.training.seed, counted(config.training.threads, "thread"),
                               training::precision_name(config.training),
                               done > 0 ? fmt::format("; {} done", counted(done, "epoch")) : ""));
  if (config.num_recorded > 0) {
    const std::uint64_t most = trainer.pruner().options().num_samples;
    facts.add("record", fmt::format("the per-sample losses of {} samples",
                                    with_commas(std::min(config.num_recorded, most))));
  }
  if (!trainer.team().is_alone()) {
    facts.add("processes", fmt::format("{}, scores {}", trainer.team().size(),
                                       to_text(trainer.pruner().layout())));
  }
  facts.add("folder", trainer.folder().path().string());
  return facts.text() + "\n";
}

runs::RunResult result_of(const training::Trainer& trainer) {
  return runs::summarize_run(runs::read_run(trainer.folder().path()));
}

nlohmann::ordered_json result_json(const training::Trainer& trainer) {
  nlohmann::ordered_json json = {{"run", trainer.folder().path().string()},
                                 {"epochs", trainer.metrics().size()}};
  const auto result = result_of(trainer);
  json["test_accuracy"] = result.value;
  json["pruned_share"] = result.pruned_share;
  if (const auto target = trainer.config().method.target_prune) json["target_prune"] = *target;
  json["train_seconds"] = result.train_seconds;
  json["prune_seconds"] = result.prune_seconds;
  return json;
}

// Empty unless the run missed the share that it was to prune.
std::string missed_target(const training::Trainer& trainer, double pruned_share) {
  const auto target = trainer.config().method.target_prune;
  if (!target || std::abs(pruned_share - *target) <= 0.005) return "";
  if (training::is_fewer_epochs(trainer.config().method)) return "";  // whole epochs only
  return fmt::format(
      "the target was to prune {:.1f} %, which policy {} could not reach with its ratio in [0, "
      "{}]\n",
      100.0 * *target, trainer.config().method.policy.name,
      make_policy(trainer.config().method.policy)->max_prune_ratio());
}

std::string conclusion(const training::Trainer& trainer) {
  const auto result = result_of(trainer);
  const std::string folder = trainer.folder().path().string();
  return fmt::format(
      "\ntest accuracy {:.2f} %, pruned {:.1f} %, trained for {} ({:.3f} % of it spent on "
      "pruning)\n"
      "{}run folder {}\n",
      100.0 * result.value, 100.0 * result.pruned_share,
      runs::format_duration(result.train_seconds),
      100.0 * result.prune_seconds / result.train_seconds,
      missed_target(trainer, result.pruned_share), folder);
}

void train(const TrainArguments& arguments) {
  const bool is_new = arguments.resume.empty();
  const RunConfig config = is_new ? new_config(arguments) : resumed_config(arguments);
  const std::string path =
      !is_new ? arguments.resume
      : !arguments.out.empty()
          ? arguments.out
          : default_folder({config.data.name, config.model.name, config.method.name,
                            fmt::format("seed{}", config.training.seed)});
  const auto existing =
      arguments.overwrite ? RunFolder::Existing::overwrite : RunFolder::Existing::refuse;
  const training::Team team = arguments.team.connect();
  detail::together(*team.communicator(), [&] {
    if (is_new && team.is_first()) RunFolder::check_new(path, existing);
  });
  const auto data = training::load_run_data(config.data);
  const StopSignals signals;
  std::optional<RunFolder> folder;
  detail::together(*team.communicator(), [&] {
    if (team.is_first()) {
      folder = is_new ? RunFolder::create(path, existing) : RunFolder::open(path);
    } else {
      folder = RunFolder::join(path);
    }
  });
  training::Trainer trainer(config, *data, std::move(*folder), team,
                            arguments.team.chosen_layout());

  const bool is_quiet = arguments.quiet || !team.is_first();
  const bool shows_lines = !is_quiet && !arguments.json;
  if (shows_lines) print(introduction(trainer));
  training::ProgressLine progress(
      {.num_epochs = config.training.epochs,
       .width = !is_quiet && is_terminal(Stream::error) ? terminal_width() : 0,
       .epoch_lines = shows_lines,
       .seconds_between = shows_lines ? training::kSecondsBetweenLines : 0.0},
      print_error, [](std::string_view text) { print(text); });
  const auto outcome = trainer.run(progress, [] { return StopSignals::received() != 0; });
  progress.clear();
  if (outcome == training::Outcome::interrupted) {
    if (team.is_first()) stop_interrupted("train", path);
    throw Interrupted(StopSignals::received() != 0 ? StopSignals::received() : SIGTERM);
  }
  if (!team.is_first()) return;
  print(arguments.json ? format_json(result_json(trainer)) : conclusion(trainer));
}

}  // namespace

void add_train(CLI::App& program) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App& command = *program.add_subcommand("train", "Train a model, with or without pruning");
  command
      .add_option("--method", arguments->method, "how to prune, see below (default: bls-infobatch)")
      ->type_name("NAME");
  command.add_option("--score", arguments->score, "instead of --method: the score ...")
      ->type_name("NAME");
  command
      .add_option("--policy", arguments->policy,
                  "... and the policy, by name; see tamis simulate --help")
      ->type_name("NAME");
  add_path(command, "--out", arguments->out,
           "folder of the run (default: runs/DATA-MODEL-METHOD-seedS)")
      .type_name("FOLDER");
  add_path(command, "--resume", arguments->resume,
           "continue the run in this folder, exactly where it stopped")
      .type_name("FOLDER");
  command.add_flag("--overwrite", arguments->overwrite, "replace a run that is in the folder");
  add_optional_count(
      command, "--record", arguments->num_recorded, 10'000,
      "record the run for tamis analyze and tamis replay, with the per-sample losses of\n"
      "COUNT samples drawn at random (10000 without a number)");
  command.add_flag("--json", arguments->json, "print the result as JSON");
  command.add_flag("--quiet", arguments->quiet, "print the result only");
  arguments->team.add(command);
  arguments->flags.add(command, true);
  command.footer(
      "Trains, tests after every epoch, and writes config.json, metrics.jsonl and a checkpoint to\n"
      "the folder of the run. Ctrl-C or SIGTERM saves at once; --resume then goes on as if "
      "nothing\n"
      "had happened. Images come from ./data or from Debian's package dataset-fashion-mnist.\n\n" +
      describe_methods() + "\n" + describe_presets() + "\n" + describe_team() +
      "\nExamples:\n"
      "  tamis train --method bls-infobatch --epochs 10 --out runs/first\n"
      "  tamis train --data cifar10 --model resnet18 --method bls-seta --alpha 0.8\n"
      "  tamis train --resume runs/first\n"
      "Exit code: 130 or 143 after Ctrl-C or SIGTERM.\n");
  command.callback([arguments] { train(*arguments); });
}

}  // namespace tamis::program
