#include "training/trainer/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tamis::training {

namespace {

constexpr double kSecondsBetween = 0.1;

// 1234567 as 1,234,567.
std::string with_commas(double number) {
  std::string text = fmt::format("{:.0f}", number);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

std::string speed(std::uint64_t samples, double seconds) {
  return seconds > 0.0 ? with_commas(static_cast<double>(samples) / seconds) : "-";
}

}  // namespace

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(std::max(seconds, 0.0)));
  const std::uint64_t minutes = whole / 60;
  if (minutes == 0) return fmt::format("{} s", whole);
  if (minutes < 60) return fmt::format("{}:{:02} min", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", minutes / 60, minutes % 60, whole % 60);
}

std::string format_epoch(const EpochMetrics& metrics, std::uint64_t num_epochs) {
  const auto total = static_cast<double>(metrics.samples + metrics.pruned);
  return fmt::format(
      "epoch {}/{}  loss {:.4f}  accuracy {:.1f} %  test {:.2f} %  pruned {:.1f} %  {} samples/s  "
      "{:.1f} s",
      metrics.epoch + 1, num_epochs, metrics.train_loss, 100.0 * metrics.train_accuracy,
      100.0 * metrics.test_accuracy, 100.0 * static_cast<double>(metrics.pruned) / total,
      speed(metrics.samples, metrics.train_seconds), metrics.train_seconds);
}

std::string format_step(const StepInfo& step, std::uint64_t num_epochs) {
  return fmt::format(
      "epoch {}/{}  step {}/{}  loss {:.4f}  accuracy {:.1f} %  pruned {:.1f} %  {} "
      "samples/s",
      step.epoch + 1, num_epochs, step.running.steps, step.num_steps, step.running.mean_loss(),
      100.0 * step.running.accuracy(), 100.0 * step.pruned_share,
      speed(step.running.samples, step.running.train_seconds));
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
    text += fmt::format("  {} left", format_duration(left));
  }
  // A line that wraps could not be written over.
  text.resize(std::min(text.size(), options_.width - 1));
  live_("\r" + text + "\x1b[K");
  is_shown_ = true;
  since_shown_.restart();
}

void ProgressLine::on_epoch(const EpochMetrics& metrics) {
  if (!options_.epoch_lines) return;
  clear();
  lines_(options_.prefix + format_epoch(metrics, options_.num_epochs) + "\n");
}

void ProgressLine::clear() {
  if (!is_shown_) return;
  live_("\r\x1b[K");
  is_shown_ = false;
}

}  // namespace tamis::training
