#include "training/trainer/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runs/summary.h"

namespace tamis::training {

namespace {

constexpr double kSecondsBetween = 0.1;
constexpr std::size_t kPlainWidth = 200;

}  // namespace

std::string format_step(const StepInfo& step, std::uint64_t num_epochs, std::size_t width) {
  struct Part {
    std::string text;
    int rank;  // parts with the highest number are the first to go
  };
  const RunningEpoch& running = step.running;
  std::vector<Part> parts = {{fmt::format("epoch {}/{}", step.epoch + 1, num_epochs), 1},
                             {fmt::format("step {}/{}", running.steps, step.num_steps), 4},
                             {fmt::format("loss {:.4f}", running.mean_loss()), 2},
                             {fmt::format("accuracy {:.1f} %", 100.0 * running.accuracy()), 3},
                             {fmt::format("pruned {:.1f} %", 100.0 * step.pruned_share), 0},
                             {runs::format_speed(running.samples, running.train_seconds), 5}};
  for (;;) {
    std::string text;
    for (const Part& part : parts) text += (text.empty() ? "" : "  ") + part.text;
    if (text.size() <= width || parts.size() == 1) return text;
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const Part& x, const Part& y) { return x.rank < y.rank; }));
  }
}

ProgressLine::ProgressLine(ProgressOptions options, Write live, Write lines)
    : options_(std::move(options)), live_(std::move(live)), lines_(std::move(lines)) {}

std::string ProgressLine::text(const StepInfo& step, std::size_t width) const {
  std::string left;
  if (options_.seconds_left) {
    left = fmt::format("  {} left in all",
                       runs::format_duration(options_.seconds_left(step.progress)));
  } else if (const double done = step.progress - first_progress_; done > 0.0) {
    left = fmt::format(
        "  {} left", runs::format_duration(since_start_.seconds() * (1.0 - step.progress) / done));
  }
  const std::size_t others = options_.prefix.size() + left.size();
  return options_.prefix +
         format_step(step, options_.num_epochs, width > others ? width - others : 0) + left;
}

void ProgressLine::on_step(const StepInfo& step) {
  if (options_.width == 0 && options_.seconds_between == 0.0) return;
  if (first_progress_ < 0.0) {
    // The first step counts as a beginning only, since it also pays for starting up.
    first_progress_ = step.progress;
    since_start_.restart();
  }
  if (options_.width == 0) {
    if (since_shown_.seconds() < options_.seconds_between) return;
    lines_(text(step, kPlainWidth) + "\n");
    since_shown_.restart();
    return;
  }
  if (is_shown_ && since_shown_.seconds() < kSecondsBetween) return;
  // A line that wraps could not be written over.
  live_("\r" + text(step, options_.width - 1).substr(0, options_.width - 1) + "\x1b[K");
  is_shown_ = true;
  since_shown_.restart();
}

void ProgressLine::on_epoch(const runs::EpochMetrics& metrics) {
  if (!options_.epoch_lines) return;
  clear();
  lines_(options_.prefix +
         runs::format_epoch(metrics, runs::classification_metrics(), options_.num_epochs) + "\n");
  since_shown_.restart();
}

void ProgressLine::clear() {
  if (!is_shown_) return;
  live_("\r\x1b[K");
  is_shown_ = false;
}

}  // namespace tamis::training
