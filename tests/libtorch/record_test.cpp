// A handler's recording.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "support/scratch_folder.h"
#include "tamis/libtorch/handler.h"
#include "tamis/recording.h"

namespace tamis::libtorch::record_test {

PrunerOptions options() {
  return {.num_samples = 10, .num_epochs = 3, .score = Spec{"batch-loss"}};
}

// Batches of four from the plan; the loss of sample i is i / 8.
void train_epoch(Handler& handler, bool per_sample) {
  Sampler sampler = handler.sampler(4);
  sampler.reset();
  while (const auto batch = sampler.next(4)) {
    const std::vector<SampleIndex> indices(batch->begin(), batch->end());
    torch::Tensor losses = torch::tensor(indices).to(torch::kFloat) / 8.0;
    handler.update(per_sample ? losses : losses.mean(), indices);
  }
}

struct Step {
  std::uint64_t epoch;
  std::vector<std::uint32_t> indices;
  float mean_loss;
  std::vector<float> losses;
};

std::vector<Step> read(const std::filesystem::path& folder) {
  std::vector<Step> steps;
  Recording(folder).read([&](const RecordedStep& step) {
    steps.push_back({step.epoch,
                     {step.indices.begin(), step.indices.end()},
                     step.mean_loss,
                     {step.losses.begin(), step.losses.end()}});
  });
  return steps;
}

TEST(HandlerRecord, HasThePerSampleLossesThatUpdateWasGiven) {
  const tamis::test::ScratchFolder scratch;
  Handler handler(options());
  handler.record(scratch / "r");
  train_epoch(handler, true);
  train_epoch(handler, false);
  handler.recorder()->flush();
  const std::vector<Step> steps = read(scratch / "r");
  ASSERT_GE(steps.size(), 4U);
  EXPECT_EQ(steps[0].losses.at(1), static_cast<float>(steps[0].indices.at(1)) / 8.0F);
  EXPECT_EQ(steps.back().epoch, 1U);
  EXPECT_TRUE(std::isnan(steps.back().losses.at(0)));
}

TEST(HandlerRecord, GoesOnAfterAResumeWithoutAStepTwice) {
  const tamis::test::ScratchFolder scratch;
  {
    Handler handler(options());
    handler.record(scratch / "r");
    train_epoch(handler, true);
    handler.save(scratch / "state");
    train_epoch(handler, true);  // after the checkpoint, and lost with it
  }
  Handler handler(options());
  handler.load(scratch / "state");
  handler.record(scratch / "r");
  EXPECT_EQ(handler.recorder()->num_steps(), 3U);
  train_epoch(handler, false);
  handler.recorder()->flush();
  const std::vector<Step> steps = read(scratch / "r");
  EXPECT_EQ(steps.size(), handler.pruner().num_observations());
  EXPECT_TRUE(std::isnan(steps.back().losses.at(0)));
}

TEST(HandlerRecord, IsNullUnlessAskedFor) {
  Handler handler(options());
  EXPECT_EQ(handler.recorder(), nullptr);
}

}  // namespace tamis::libtorch::record_test
