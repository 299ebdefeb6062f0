#include "program/train/comparison_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "program/shared/output.h"
#include "program/shared/signals.h"
#include "program/shared/table.h"
#include "program/shared/terminal.h"
#include "training/trainer/progress_line.h"
#include "training/trainer/stopwatch.h"

namespace tamis::program {

namespace {

using runs::PlannedRun;

// A live line for the run that trains, a plain line for every one that has ended.
class CompareProgress final : public training::ComparisonObserver {
 public:
  CompareProgress(std::uint64_t num_epochs, bool shows_lines, bool shows_live)
      : num_epochs_(num_epochs), shows_lines_(shows_lines), shows_live_(shows_live) {}

  std::unique_ptr<training::TrainingObserver> begin_run(const PlannedRun& run) override {
    return std::make_unique<training::ProgressLine>(
        training::ProgressOptions{
            .num_epochs = num_epochs_,
            .prefix = run.title() + "  ",
            .width = shows_live_ ? terminal_width() : 0,
            .epoch_lines = false,
            .seconds_between = shows_lines_ ? training::kSecondsBetweenLines : 0.0,
            .seconds_left =
                [this, &run](double progress) {
                  // Of the runs made so far, this one in part.
                  const double made = static_cast<double>(num_made_) + std::max(progress, 1e-3);
                  const auto all = static_cast<double>(num_made_ + run.total - run.number + 1);
                  return since_start_.seconds() * (all - made) / made;
                }},
        print_error, [](std::string_view text) { print(text); });
  }

  void end_run(const PlannedRun& run, bool was_finished) override {
    if (!was_finished) ++num_made_;
    if (shows_lines_) print_run(run, was_finished);
  }

 private:
  std::uint64_t num_epochs_;
  bool shows_lines_;
  bool shows_live_;
  training::Stopwatch since_start_;
  std::size_t num_made_ = 0;
};

}  // namespace

void run_and_print(const runs::Comparison& comparison, const training::DataSplits& data,
                   const ComparisonOutput& output) {
  const training::RunConfig shared = training::shared_config(comparison);
  const bool is_quiet = output.flags.quiet || !output.team.is_first();
  const StopSignals signals;
  CompareProgress progress(shared.training.epochs, !is_quiet && !output.flags.json,
                           !is_quiet && is_terminal(Stream::error));
  const auto outcome = training::run_comparison(
      comparison, data, progress, [] { return StopSignals::received() != 0; }, output.team,
      output.layout, output.flags.repeat_disturbed);
  if (outcome == training::Outcome::interrupted) {
    if (output.team.is_first()) stop_interrupted(output.command, comparison.path().string());
    // The signal may have come to another process.
    throw Interrupted(StopSignals::received() != 0 ? StopSignals::received() : SIGTERM);
  }
  if (!output.team.is_first()) return;
  print_summary(comparison, output.flags,
                fmt::format("{}, {}, {}, batch size {}, {}, {}", shared.data.name,
                            shared.model.name, counted(shared.training.epochs, "epoch"),
                            shared.training.batch_size, counted(shared.training.threads, "thread"),
                            training::precision_name(shared.training)),
                output.more);
}

}  // namespace tamis::program
