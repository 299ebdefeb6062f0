#include "program/train/comparison_run.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/shared/signals.h"
#include "program/shared/terminal.h"
#include "training/trainer/progress_line.h"

namespace tamis::program {

namespace {

using training::Comparison;
using training::ComparisonConfig;
using training::ComparisonRun;

// A live line for the run that trains, a plain line for every one that has ended.
class CompareProgress final : public training::ComparisonObserver {
 public:
  CompareProgress(std::uint64_t num_epochs, bool shows_lines, bool shows_live)
      : num_epochs_(num_epochs), shows_lines_(shows_lines), shows_live_(shows_live) {}

  std::unique_ptr<training::TrainingObserver> begin_run(const ComparisonRun& run) override {
    return std::make_unique<training::ProgressLine>(
        training::ProgressOptions{.num_epochs = num_epochs_,
                                  .prefix = title(run) + "  ",
                                  .width = shows_live_ ? terminal_width() : 0,
                                  .epoch_lines = false},
        [](std::string_view text) { fmt::print(stderr, "{}", text); },
        [](std::string_view text) { print(text); });
  }

  void end_run(const ComparisonRun& run, const training::RunResult& result,
               bool was_finished) override {
    if (!shows_lines_) return;
    print(fmt::format("{}  accuracy {:.2f} %  pruned {:.1f} %  {}{}\n", title(run),
                      100.0 * result.accuracy, 100.0 * result.pruned_share,
                      training::format_duration(result.train_seconds),
                      was_finished ? "  (was done)" : ""));
  }

 private:
  static std::string title(const ComparisonRun& run) {
    return fmt::format("[{}/{}] {} seed {}", run.number, run.total, run.method->name, run.seed);
  }

  std::uint64_t num_epochs_;
  bool shows_lines_;
  bool shows_live_;
};

std::string title(const ComparisonConfig& config) {
  const auto& shared = config.shared;
  return fmt::format("{}, {}, {} epochs, batch size {}, {} threads\n\n", shared.data.name,
                     shared.model.name, shared.training.epochs, shared.training.batch_size,
                     shared.training.threads);
}

}  // namespace

void ComparisonFlags::add(CLI::App& command, const ComparisonWords& words) {
  const auto& [noun, varied, baseline_help, default_folder] = words;
  command
      .add_option("--seeds", seeds, fmt::format("one run per {} and seed (default: 0 1 2)", varied))
      ->type_name("COUNT...");
  command.add_option("--baseline", baseline, baseline_help)->type_name("NAME");
  command
      .add_option("--out", out, fmt::format("folder of the {} (default: {})", noun, default_folder))
      ->type_name("FOLDER");
  command.add_option("--resume", resume, fmt::format("continue the {} in this folder", noun))
      ->type_name("FOLDER");
  command.add_flag("--overwrite", overwrite,
                   fmt::format("replace a {} that is in the folder, with all its runs", noun));
  command.add_flag("--json", json, "print the summary as JSON");
  command.add_flag("--quiet", quiet, "print the table only");
}

void ComparisonFlags::check_resume_alone(const std::string& noun, bool others) const {
  if (others || overwrite || !seeds.empty() || !baseline.empty() || !out.empty()) {
    throw UsageError(fmt::format(
        "--resume takes all settings from the {}; only --json and --quiet go with it", noun));
  }
}

training::Summary run_comparison(Comparison& comparison, const training::DataSplits& data,
                                 const ComparisonOutput& output) {
  const StopSignals signals;
  CompareProgress progress(comparison.config().shared.training.epochs, output.lines,
                           output.live && is_terminal(Stream::error));
  const auto outcome = comparison.run(
      data, progress, [] { return StopSignals::received() != 0; }, output.team, output.layout);
  if (outcome == training::Outcome::interrupted) {
    if (output.team.is_first()) {
      fmt::print(stderr, "tamis: interrupted and saved; continue with: tamis {} --resume {}\n",
                 output.command, comparison.path().string());
    }
    // The signal may have come to another process.
    throw Interrupted(StopSignals::received() != 0 ? StopSignals::received() : SIGTERM);
  }
  return comparison.summarize();
}

std::string describe_result(const Comparison& comparison, const training::Summary& summary,
                            bool quiet) {
  return fmt::format("{}{}{}\nresults in {}\n", quiet ? "" : "\n", title(comparison.config()),
                     format_summary(summary, has_utf8()), comparison.path().string());
}

}  // namespace tamis::program
