#include "training/trainer/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runs/summary.h"

namespace tamis::training {

namespace {

constexpr double kSecondsBetween = 0.1;

}  // namespace

std::string format_step(const StepInfo& step, std::uint64_t num_epochs) {
  return fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}  accuracy {:.1f} %  pruned {:.1f} %  {}",
                     step.epoch + 1, num_epochs, step.running.steps, step.num_steps,
                     step.running.mean_loss(), 100.0 * step.running.accuracy(),
                     100.0 * step.pruned_share,
                     runs::format_speed(step.running.samples, step.running.train_seconds));
}

ProgressLine::ProgressLine(ProgressOptions options, Write live, Write lines)
    : options_(std::move(options)), live_(std::move(live)), lines_(std::move(lines)) {}

void ProgressLine::on_step(const StepInfo& step) {
  if (options_.width == 0) return;
  if (first_progress_ < 0.0) {
    // The first step counts as a beginning only, since it also pays for starting up.
    first_progress_ = step.progress;
    since_start_.restart();
  }
  if (is_shown_ && since_shown_.seconds() < kSecondsBetween) return;
  const double done = step.progress - first_progress_;
  std::string text = options_.prefix + format_step(step, options_.num_epochs);
  if (done > 0.0) {
    const double left = since_start_.seconds() * (1.0 - step.progress) / done;
    text += fmt::format("  {} left", runs::format_duration(left));
  }
  // A line that wraps could not be written over.
  text.resize(std::min(text.size(), options_.width - 1));
  live_("\r" + text + "\x1b[K");
  is_shown_ = true;
  since_shown_.restart();
}

void ProgressLine::on_epoch(const runs::EpochMetrics& metrics) {
  if (!options_.epoch_lines) return;
  clear();
  lines_(options_.prefix +
         runs::format_epoch(metrics, runs::classification_metrics(), options_.num_epochs) + "\n");
}

void ProgressLine::clear() {
  if (!is_shown_) return;
  live_("\r\x1b[K");
  is_shown_ = false;
}

}  // namespace tamis::training
