#include "training/trainer/step_loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>

#include "tamis/selection.h"

namespace tamis::training::step_loss_test {

// Six samples, of which the one at position 2 of the plan counts three times.
EpochPlan weighted_plan() {
  const EpochPlan plain(Selection::all(6), 0, 0, true);
  Selection selection = Selection::all(6);
  selection.rescaled = Bitmap(6);
  selection.rescaled.set(static_cast<std::size_t>(plain.sample(2)));
  selection.rescale = 3.0F;
  return {selection, 0, 0, true};
}

struct Case {
  torch::Tensor logits = torch::randn({3, 4}, torch::kFloat32).requires_grad_(true);
  torch::Tensor labels = torch::tensor({0, 3, 1}, torch::kInt64);
  std::size_t begin = 2;

  torch::Tensor losses() const {
    return torch::nn::functional::cross_entropy(
        logits, labels, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
  }
  torch::Tensor gradient(const torch::Tensor& objective) const {
    return torch::autograd::grad({objective}, {logits}, {}, /*retain_graph=*/true)[0];
  }
};

TEST(StepLoss, PerSampleEveryLossHasItsOwnWeight) {
  torch::manual_seed(1);
  const Case c;
  const StepLoss loss =
      make_step_loss(c.logits, c.labels, weighted_plan(), c.begin, {.per_sample = true});
  const torch::Tensor expected = (c.losses() * torch::tensor({3.0F, 1.0F, 1.0F})).mean();
  EXPECT_TRUE(torch::allclose(c.gradient(loss.objective), c.gradient(expected)));
  EXPECT_NEAR(loss.mean_loss, c.losses().mean().item<double>(), 1e-6);
  ASSERT_EQ(loss.sample_losses().size(), 3U);
  for (std::int64_t k = 0; k < 3; ++k) {
    EXPECT_EQ(loss.sample_losses()[static_cast<std::size_t>(k)], c.losses()[k].item<float>());
  }
}

TEST(StepLoss, ScalarTheMeanLossIsMultipliedByTheMeanWeight) {
  torch::manual_seed(2);
  const Case c;
  const StepLoss loss = make_step_loss(c.logits, c.labels, weighted_plan(), c.begin, {});
  const torch::Tensor expected = c.losses().mean() * (5.0 / 3.0);
  EXPECT_TRUE(torch::allclose(c.gradient(loss.objective), c.gradient(expected)));
  EXPECT_NEAR(loss.mean_loss, c.losses().mean().item<double>(), 1e-6);
}

TEST(StepLoss, WithoutWeightsBothFormsAgree) {
  torch::manual_seed(3);
  const Case c;
  const EpochPlan plan(Selection::all(6), 0, 0, false);
  const StepLossOptions smooth{.label_smoothing = 0.1};
  const StepLossOptions smooth_per_sample{.label_smoothing = 0.1, .per_sample = true};
  const StepLoss scalar = make_step_loss(c.logits, c.labels, plan, c.begin, smooth);
  const StepLoss single = make_step_loss(c.logits, c.labels, plan, c.begin, smooth_per_sample);
  EXPECT_NEAR(scalar.mean_loss, single.mean_loss, 1e-6);
  EXPECT_GT(std::abs(scalar.mean_loss - c.losses().mean().item<double>()), 1e-3);
  EXPECT_TRUE(torch::allclose(c.gradient(scalar.objective), c.gradient(single.objective)));
}

}  // namespace tamis::training::step_loss_test
