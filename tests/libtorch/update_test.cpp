// What update returns, and that it can be differentiated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/coded_data.h"

namespace tamis::libtorch::update_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A handler in epoch 1 of InfoBatch: samples 0 to 9 are easy, half of them are left with weight 2,
// the others are hard and have weight 1.
class Update : public ::testing::Test {
 protected:
  Update() {
    Sampler sampler = handler_.sampler(20);
    sampler.reset();
    sampler.next(20);
    std::vector<SampleIndex> all(20);
    std::iota(all.begin(), all.end(), 0);
    const std::span<const SampleIndex> span(all);
    handler_.update(torch::tensor(0.5), span.first(10));
    handler_.update(torch::tensor(1.5), span.last(10));
    handler_.set_epoch(1);
    for (const auto index : handler_.pruner().plan()->order()) {
      (index < 10 ? easy_ : hard_).push_back(SampleIndex{index});
    }
  }
  std::vector<SampleIndex> mixed() const {  // weights 2, 2, 1, 1, 1
    return {easy_[0], easy_[1], hard_[0], hard_[1], hard_[2]};
  }

  Handler handler_{PrunerOptions{.num_samples = 20,
                                 .num_epochs = 10,
                                 .policy = {"infobatch", {{"prune_ratio", 0.5}}},
                                 .score = Spec{"last-batch-loss"}}};
  std::vector<SampleIndex> easy_;
  std::vector<SampleIndex> hard_;
};

TEST_F(Update, ThePlanIsAsTheTestsAssume) {
  ASSERT_EQ(easy_.size(), 5);
  ASSERT_EQ(hard_.size(), 10);
  EXPECT_EQ(handler_.pruner().plan()->weight_of(easy_[0]), 2.0F);
}

TEST_F(Update, AScalarIsMultipliedByTheMeanWeightOfItsBatch) {
  EXPECT_DOUBLE_EQ(handler_.update(torch::tensor(3.0, torch::kDouble), mixed()).item<double>(),
                   4.2);
  EXPECT_DOUBLE_EQ(handler_.update(torch::tensor(3.0, torch::kDouble), easy_).item<double>(), 6.0);
}

TEST_F(Update, AScalarOfWeightOneIsReturnedAsItIs) {
  const torch::Tensor loss = torch::tensor(3.0);
  EXPECT_TRUE(handler_.update(loss, hard_).is_same(loss));
}

TEST_F(Update, LossesOfSamplesAreWeightedOneByOne) {
  const torch::Tensor losses = torch::tensor({1.0, 2.0, 3.0, 4.0, 5.0}, torch::kDouble);
  const torch::Tensor result = handler_.update(losses, mixed());
  EXPECT_EQ(result.dim(), 0);
  EXPECT_DOUBLE_EQ(result.item<double>(), (2 * 1.0 + 2 * 2.0 + 3.0 + 4.0 + 5.0) / 5);
}

TEST_F(Update, ObservesTheLossItWasGivenNotTheOneItReturns) {
  handler_.update(torch::tensor(3.0), easy_);
  for (const SampleIndex index : easy_) {
    EXPECT_FLOAT_EQ(handler_.pruner().scores()[static_cast<std::size_t>(index)], 3.0F);
  }
}

TEST_F(Update, NeverChangesTheTensorItWasGiven) {
  for (const torch::Tensor& loss :
       {torch::tensor(3.0, torch::kDouble), torch::arange(1.0, 6.0, torch::kDouble)}) {
    const torch::Tensor before = loss.clone();
    const auto version = loss._version();
    handler_.update(loss, mixed());
    EXPECT_TRUE(torch::equal(loss, before));
    EXPECT_EQ(loss._version(), version);
  }
}

// Losses whose backward pass reads their own output: an in-place product would break them.
TEST_F(Update, GradientsAreThoseOfTheWeightedLoss) {
  using Loss = std::function<torch::Tensor(const torch::Tensor&)>;
  const std::vector<Loss> losses{[](const torch::Tensor& x) { return x.pow(2).mean(); },
                                 [](const torch::Tensor& x) { return x.pow(2).mean().sqrt(); },
                                 [](const torch::Tensor& x) { return x.mean().exp(); },
                                 [](const torch::Tensor& x) { return torch::logsumexp(x, 0); },
                                 [](const torch::Tensor& x) { return x.abs().sqrt(); },
                                 [](const torch::Tensor& x) { return x.exp(); },
                                 [](const torch::Tensor& x) {
                                   return torch::logsumexp(torch::stack({x, 2 * x}), 0);
                                 }};
  const torch::Tensor weights = torch::tensor({2.0, 2.0, 1.0, 1.0, 1.0}, torch::kDouble);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const torch::Tensor start = torch::linspace(0.3, 1.9, 5, torch::kDouble);
    const torch::Tensor x = start.clone().requires_grad_();
    const torch::Tensor loss = losses[i](x);
    handler_.update(loss, mixed()).backward();

    const torch::Tensor y = start.clone().requires_grad_();
    const torch::Tensor expected = losses[i](y);
    (expected.dim() == 0 ? expected * 1.4 : (expected * weights).mean()).backward();
    EXPECT_TRUE(torch::allclose(x.grad(), y.grad(), 1e-12, 1e-12)) << "loss " << i;
    EXPECT_TRUE(torch::equal(loss, expected)) << "loss " << i;  // what the user logs
  }
}

TEST_F(Update, WorksWithoutGradients) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = torch::ones({5}).requires_grad_();
  EXPECT_FALSE(handler_.update((x * 2).mean(), mixed()).requires_grad());
  EXPECT_FALSE(handler_.update(x * 2, mixed()).requires_grad());
  EXPECT_EQ(handler_.pruner().num_observations(), 4);
}

TEST_F(Update, KeepsTheTypeOfTheLoss) {
  for (const auto type : {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16}) {
    const torch::Tensor scalar = torch::tensor(2.5).to(type).requires_grad_();
    const torch::Tensor weighted = handler_.update(scalar, mixed());
    EXPECT_EQ(weighted.scalar_type(), type);
    EXPECT_NEAR(weighted.item<double>(), 3.5, type == torch::kBFloat16 ? 0.02 : 0.002);
    weighted.backward();
    EXPECT_NEAR(scalar.grad().item<double>(), 1.4, 0.01);
    EXPECT_FLOAT_EQ(handler_.pruner().scores()[static_cast<std::size_t>(easy_[0])], 2.5F);

    const torch::Tensor losses = torch::arange(1.0, 6.0).to(type).requires_grad_();
    const torch::Tensor mean = handler_.update(losses, mixed());
    EXPECT_EQ(mean.scalar_type(), type);
    EXPECT_NEAR(mean.item<double>(), 3.6, type == torch::kBFloat16 ? 0.02 : 0.002);
    mean.backward();
    EXPECT_NEAR(losses.grad()[0].item<double>(), 0.4, 0.01);
    EXPECT_NEAR(losses.grad()[4].item<double>(), 0.2, 0.01);
  }
}

TEST_F(Update, ANonFiniteLossIsReturnedButNotObserved) {
  const auto before = handler_.pruner().scores();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(handler_.update(torch::tensor(nan), mixed()).item<double>()));
  handler_.update(torch::tensor({1.0, 2.0, nan, 4.0, 5.0}), mixed());
  EXPECT_EQ(handler_.pruner().num_skipped_observations(), 2);
  const auto after = handler_.pruner().scores();
  EXPECT_EQ(before, after);
}

TEST_F(Update, RefusesLossesOfTheWrongShapeOrType) {
  const auto expect_refused = [&](const torch::Tensor& loss, const char* message) {
    EXPECT_THAT([&] { handler_.update(loss, mixed()); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  expect_refused(torch::ones({4}), "5 samples, got shape [4]");
  expect_refused(torch::ones({5, 1}), "got shape [5, 1]");
  expect_refused(torch::ones({}, torch::kInt64), "floating-point");
  expect_refused({}, "undefined");
  EXPECT_EQ(handler_.pruner().num_observations(), 2);
}

TEST_F(Update, RefusesIndicesThatAreOutOfRangeOrNotInt64) {
  EXPECT_THROW(handler_.update(torch::ones({}), torch::tensor({0, 20})), std::out_of_range);
  EXPECT_THROW(handler_.update(torch::ones({}), torch::tensor({0.0, 1.0})), std::invalid_argument);
  EXPECT_THROW(handler_.update(torch::ones({}), torch::zeros({2, 2}, torch::kInt64)),
               std::invalid_argument);
}

TEST(UpdateOfSampleLosses, FeedsScoresThatNeedThem) {
  Handler handler({.num_samples = 4, .num_epochs = 2});  // InfoBatch with its own score
  handler.set_epoch(0);
  handler.update(torch::tensor({0.5, 1.5, 2.5}), torch::tensor({2, 0, 1}));
  handler.update(torch::tensor(9.0), torch::tensor({3}));  // of one sample, the mean is its loss
  EXPECT_THAT(handler.pruner().scores(), ::testing::ElementsAre(1.5F, 2.5F, 0.5F, 9.0F));
  EXPECT_THAT(
      [&] {
        handler.update(torch::tensor(1.0), torch::tensor({0, 1}));
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("needs one loss per sample")));
}

}  // namespace tamis::libtorch::update_test
