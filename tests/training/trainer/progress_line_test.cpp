#include "training/trainer/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runs/summary.h"

namespace tamis::training::progress_line_test {

using ::testing::HasSubstr;
using ::testing::Not;

const RunningEpoch kRunning{.steps = 120,
                            .samples = 15360,
                            .correct = 13824,
                            .loss_sum = 36.0,
                            .learning_rate = 0.1,
                            .train_seconds = 2.0,
                            .prune_seconds = 0.0};

StepInfo step(double progress = 0.5) {
  return {.epoch = 2,
          .num_steps = 469,
          .progress = progress,
          .pruned_share = 0.241,
          .running = kRunning,
          .indices = {},
          .mean_loss = 0.4,
          .losses = {}};
}

runs::EpochMetrics epoch() {
  return {.epoch = 2,
          .samples = 45000,
          .pruned = 15000,
          .train_seconds = 4.0,
          .values = {{"test_accuracy", 0.8799}, {"train_loss", 0.3}}};
}

struct Output {
  std::string live;
  std::vector<std::string> lines;

  ProgressLine::Write to_live() {
    return [this](std::string_view text) { live += text; };
  }
  ProgressLine::Write to_lines() {
    return [this](std::string_view text) { lines.emplace_back(text); };
  }
};

std::string epoch_line() { return runs::format_epoch(epoch(), runs::classification_metrics(), 16); }

TEST(ProgressLine, ShowsEpochStepLossAccuracyPrunedShareAndSpeed) {
  EXPECT_EQ(
      format_step(step(), 16),
      "epoch 3/16  step 120/469  loss 0.3000  accuracy 90.0 %  pruned 24.1 %  7,680 samples/s");
}

TEST(ProgressLine, WithoutATerminalThereIsOnePlainLinePerEpoch) {
  Output output;
  ProgressLine progress({.num_epochs = 16}, output.to_live(), output.to_lines());
  progress.on_step(step());
  progress.on_epoch(epoch());
  progress.clear();
  EXPECT_EQ(output.live, "");
  ASSERT_EQ(output.lines.size(), 1U);
  EXPECT_EQ(output.lines[0], epoch_line() + "\n");
}

TEST(ProgressLine, OnATerminalTheLineIsWrittenOverAndRemovedBeforeOthers) {
  Output output;
  ProgressLine progress({.num_epochs = 16, .prefix = "[1/2] ", .width = 200}, output.to_live(),
                        output.to_lines());
  progress.on_step(step());
  EXPECT_EQ(output.live, "\r[1/2] " + format_step(step(), 16) + "\x1b[K");
  progress.on_epoch(epoch());
  EXPECT_TRUE(output.live.ends_with("\r\x1b[K"));
  EXPECT_TRUE(output.lines[0].starts_with("[1/2] epoch 3/16"));
}

TEST(ProgressLine, IsNotWrittenForEveryStep) {
  Output output;
  ProgressLine progress({.num_epochs = 16, .width = 200}, output.to_live(), output.to_lines());
  for (int k = 0; k < 50; ++k) progress.on_step(step());
  EXPECT_LE(std::count(output.live.begin(), output.live.end(), '\r'), 3);
}

TEST(ProgressLine, TellsTheTimeLeftFromWhatItHasSeenItself) {
  Output output;
  ProgressLine progress({.num_epochs = 16, .width = 200}, output.to_live(), output.to_lines());
  progress.on_step(step(0.50));  // a resumed run
  progress.clear();
  progress.on_step(step(0.75));
  EXPECT_THAT(output.live, HasSubstr("0 s left"));
}

TEST(ProgressLine, KeepsThePrunedShareAndTheTimeLeftIn80Columns) {
  Output output;
  ProgressLine progress({.num_epochs = 16,
                         .prefix = "[12/18] bls-infobatch seed 2  ",
                         .width = 80,
                         .seconds_left = [](double) { return 247.0; }},
                        output.to_live(), output.to_lines());
  progress.on_step(step());
  EXPECT_THAT(output.live, HasSubstr("pruned 24.1 %  4:07 min left in all"));
  EXPECT_THAT(output.live, HasSubstr("epoch 3/16"));
  EXPECT_THAT(output.live, Not(HasSubstr("samples/s")));
}

TEST(ProgressLine, WithoutATerminalALineComesAfterEverySoManySeconds) {
  Output output;
  ProgressLine progress({.num_epochs = 16, .epoch_lines = false, .seconds_between = 0.05},
                        output.to_live(), output.to_lines());
  progress.on_step(step());
  EXPECT_TRUE(output.lines.empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  progress.on_step(step());
  progress.on_step(step());
  EXPECT_EQ(output.lines, std::vector<std::string>{format_step(step(), 16) + "\n"});
  EXPECT_EQ(output.live, "");
}

TEST(ProgressLine, NeverWraps) {
  for (const std::size_t width : {40U, 60U, 80U}) {
    Output output;
    ProgressLine progress({.num_epochs = 16, .width = width}, output.to_live(), output.to_lines());
    progress.on_step(step());
    EXPECT_LT(output.live.size(), width + std::string("\r\x1b[K").size());
  }
}

}  // namespace tamis::training::progress_line_test
