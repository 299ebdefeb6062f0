// ProgressLine: what a person sees of a run while it trains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "training/trainer/stopwatch.h"
#include "training/trainer/training_observer.h"

namespace tamis::training {

// For output that is no terminal: nobody should have to wonder longer whether anything happens.
inline constexpr double kSecondsBetweenLines = 10.0;

struct ProgressOptions {
  std::uint64_t num_epochs = 1;
  // Written before every line, such as "[2/18] infobatch seed 1  ".
  std::string prefix = {};
  // Columns of the terminal on which the live line is written over; 0: no live line.
  std::size_t width = 0;
  // Write a line for every finished epoch.
  bool epoch_lines = true;
  // Without a live line: a plain one after as many seconds without any. 0: never.
  double seconds_between = 0.0;
  // Seconds until all is done, given the progress of this run; empty: of this run, as far as it was
  // seen.
  std::function<double(double)> seconds_left = {};
};

// A live line, written over several times per second, and one line per finished epoch. What does
// not fit the terminal is left out: the speed first, never the pruned share and the time left.
class ProgressLine final : public TrainingObserver {
 public:
  using Write = std::function<void(std::string_view)>;

  // `live` gets the live line with its control characters, `lines` complete lines of plain text.
  ProgressLine(ProgressOptions options, Write live, Write lines);
  ~ProgressLine() override { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void on_step(const StepInfo& step) override;
  void on_epoch(const runs::EpochMetrics& metrics) override;

  // Removes the live line.
  void clear();

 private:
  std::string text(const StepInfo& step, std::size_t width) const;

  ProgressOptions options_;
  Write live_;
  Write lines_;
  Stopwatch since_start_;
  Stopwatch since_shown_;
  bool is_shown_ = false;
  double first_progress_ = -1.0;  // before the first step that was seen
};

// "epoch 3/16  step 120/469  loss 0.3121  accuracy 88.7 %  pruned 24.1 %  12,345 samples/s", or as
// much of that as `width` columns hold.
std::string format_step(const StepInfo& step, std::uint64_t num_epochs, std::size_t width = 200);

}  // namespace tamis::training
