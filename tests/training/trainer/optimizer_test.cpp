#include "training/trainer/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace tamis::training::optimizer_test {

TEST(LearningRate, OneCycleRisesToThePeakAndFallsToNearlyNothing) {
  const TrainingConfig config{.learning_rate = 0.5, .warmup = 0.3};
  EXPECT_NEAR(learning_rate_at(config, 0.0), 0.5 / 25, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0.3), 0.5);
  EXPECT_NEAR(learning_rate_at(config, 0.15), (0.5 + 0.5 / 25) / 2, 1e-12);
  EXPECT_NEAR(learning_rate_at(config, 0.65), (0.5 + 0.5 / 250000) / 2, 1e-12);
  EXPECT_NEAR(learning_rate_at(config, 1.0), 0.5 / 250000, 1e-15);
  for (int k = 0; k < 1000; ++k) {
    const double before = learning_rate_at(config, k / 1000.0);
    const double after = learning_rate_at(config, (k + 1) / 1000.0);
    EXPECT_EQ(after > before, k < 300) << k;
  }
}

TEST(LearningRate, CosineWarmsUpLinearlyAndEndsAtZero) {
  const TrainingConfig config{
      .learning_rate = 0.4, .schedule = ScheduleKind::cosine, .warmup = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0.0), 0.0);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0.05), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0.1), 0.4);
  EXPECT_NEAR(learning_rate_at(config, 0.55), 0.2, 1e-12);
  EXPECT_NEAR(learning_rate_at(config, 1.0), 0.0, 1e-15);
}

TEST(LearningRate, IsDefinedForEveryWarmup) {
  for (const auto schedule : {ScheduleKind::one_cycle, ScheduleKind::cosine}) {
    const TrainingConfig none{.learning_rate = 1.0, .schedule = schedule, .warmup = 0.0};
    EXPECT_DOUBLE_EQ(learning_rate_at(none, 0.0), 1.0);
    const TrainingConfig all{.learning_rate = 1.0, .schedule = schedule, .warmup = 1.0};
    EXPECT_DOUBLE_EQ(learning_rate_at(all, 1.0), 1.0);
  }
  const TrainingConfig constant{.learning_rate = 1.0, .schedule = ScheduleKind::constant};
  EXPECT_EQ(learning_rate_at(constant, 0.9), 1.0);
}

// One parameter with gradient 1 at every step.
double after_steps(const TrainingConfig& config, int steps) {
  torch::Tensor weight = torch::ones({1}, torch::kFloat64).requires_grad_(true);
  const auto optimizer = make_optimizer({{1.0, {weight}}}, config);
  for (int k = 0; k < steps; ++k) {
    set_learning_rate(*optimizer, {{1.0, {weight}}}, 0.1);
    optimizer->zero_grad();
    weight.sum().backward();
    optimizer->step();
  }
  return weight.item<double>();
}

TEST(Optimizer, SgdIsNesterovWithWeightDecay) {
  // v = m v + g and w -= lr (g + m v), where g includes the decay.
  double weight = 1.0;
  double velocity = 0.0;
  for (int k = 0; k < 3; ++k) {
    const double gradient = 1.0 + 0.01 * weight;
    velocity = k == 0 ? gradient : 0.9 * velocity + gradient;
    weight -= 0.1 * (gradient + 0.9 * velocity);
  }
  const TrainingConfig config{.learning_rate = 7.0, .momentum = 0.9, .weight_decay = 0.01};
  EXPECT_NEAR(after_steps(config, 3), weight, 1e-12);
}

TEST(Optimizer, SgdWithoutMomentumIsPlain) {
  const TrainingConfig config{.momentum = 0.0, .weight_decay = 0.0};
  EXPECT_NEAR(after_steps(config, 2), 0.8, 1e-12);
}

TEST(Optimizer, AdamWMovesByTheLearningRateAndDecaysApart) {
  const TrainingConfig config{
      .optimizer = OptimizerKind::adamw, .momentum = 0.9, .weight_decay = 0.05};
  EXPECT_NEAR(after_steps(config, 1), 1.0 * (1.0 - 0.1 * 0.05) - 0.1, 1e-6);
}

}  // namespace tamis::training::optimizer_test
