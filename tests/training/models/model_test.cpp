// Models: shapes, sizes, and that they learn.
#include "training/models/model.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <string>
#include <vector>

#include "training/models/model_names.h"

namespace tamis::training::model_test {

// The figures of the usual CIFAR ResNets: torchvision's with a 3 x 3 stem.
TEST(Model, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(num_parameters(*make_model("resnet18", {})), 11'173'962);
  EXPECT_EQ(num_parameters(*make_model("resnet50", {})), 23'520'842);
  EXPECT_EQ(num_parameters(*make_model("resnet18", {.num_classes = 100})), 11'220'132);
  // 12 * 32 * 9 + 2 * 32 + 32 * 64 * 9 + 2 * 64 + (64 * 16 + 1) * 10.
  EXPECT_EQ(num_parameters(*make_model("small-cnn", {})), 32'330);
}

// The first layer's outputs, in pairs of opposite sign, are uncorrelated and of variance 1.
TEST(Model, FastCnnWhitensThePixelsItWasPreparedWith) {
  torch::manual_seed(3);
  // Pixels that resemble their neighbours, as those of photographs.
  const torch::Tensor images = torch::avg_pool2d(torch::randn({64, 3, 34, 34}), 3, 1) * 3.0;
  const auto model = make_model("fast-cnn", {});
  model->prepare([&] { return images; });
  const torch::Tensor filters = model->named_parameters()["whitening.weight"];
  ASSERT_EQ(filters.sizes(), (std::vector<std::int64_t>{24, 3, 2, 2}));
  const torch::Tensor outputs =
      torch::conv2d(images, filters.narrow(0, 0, 12)).permute({1, 0, 2, 3}).reshape({12, -1});
  const torch::Tensor covariance = outputs.mm(outputs.t()) / static_cast<double>(outputs.size(1));
  EXPECT_TRUE(torch::allclose(covariance, torch::eye(12), 0.0, 0.02)) << covariance;
  EXPECT_TRUE(torch::equal(filters.narrow(0, 12, 12), -filters.narrow(0, 0, 12)));
}

TEST(Model, FastCnnLearnsTheBiasesOfItsNormsFaster) {
  const auto model = make_model("fast-cnn", {});
  EXPECT_EQ(model->learning_rate_factor("blocks.0.norm1.bias"), 64.0);
  EXPECT_EQ(model->learning_rate_factor("blocks.0.norm1.weight"), 1.0);
  // 24 * 32 * 9 + 32 * 32 * 9 + ... of the three blocks, their norms and 64 * 10.
  EXPECT_EQ(num_parameters(*model),
            9 * (24 * 32 + 32 * 32 + 32 * 64 + 3 * 64 * 64) + 2 * 2 * (32 + 64 + 64) + 640);
}

TEST(Model, MapsImagesOfAnySizeToLogits) {
  for (const std::string& name : model_names()) {
    for (const auto& [channels, height, width] : std::vector<std::array<std::int64_t, 3>>{
             {1, 28, 28}, {3, 32, 32}, {2, 9, 41}, {1, 8, 8}}) {
      const auto model = make_model(name, {.channels = channels,
                                           .height = height,
                                           .width = width,
                                           .num_classes = 5,
                                           .width_factor = 0.125});
      model->eval();
      const torch::NoGradGuard no_grad;
      const torch::Tensor logits = model->forward(torch::randn({3, channels, height, width}));
      EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{3, 5})) << name;
      EXPECT_TRUE(logits.isfinite().all().item<bool>()) << name;
    }
  }
}

// bfloat16 has 8 bits of precision, so the logits differ by about a hundredth, and differ at all.
TEST(Model, Bfloat16AndLayoutChangeTheLogitsByRoundingOnly) {
  const torch::NoGradGuard no_grad;
  for (const std::string& name : model_names()) {
    const torch::Tensor images = torch::randn({4, 3, 16, 16});
    const auto logits = [&](bool channels_last, bool bfloat16) {
      torch::manual_seed(5);
      const auto model = make_model(name, {.height = 16,
                                           .width = 16,
                                           .width_factor = 0.25,
                                           .channels_last = channels_last,
                                           .bfloat16 = bfloat16});
      model->eval();
      return model->forward(images);
    };
    const torch::Tensor exact = logits(true, false);
    const double scale = exact.abs().max().item<double>();
    EXPECT_TRUE(torch::allclose(logits(false, false), exact, 1e-4, 1e-5 * scale)) << name;
    const torch::Tensor rounded = logits(true, true);
    EXPECT_EQ(rounded.scalar_type(), torch::kFloat);
    EXPECT_TRUE(torch::allclose(rounded, exact, 0.0, 0.05 * scale)) << name;
    EXPECT_FALSE(torch::equal(rounded, exact)) << name;
    EXPECT_TRUE(torch::allclose(logits(false, true), rounded, 0.0, 0.05 * scale)) << name;
  }
}

TEST(Model, AutocastEndsWithTheForwardPass) {
  const auto model = make_model("small-cnn", {.bfloat16 = true});
  model->forward(torch::randn({2, 3, 32, 32}));
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  const torch::Tensor one = torch::ones({2, 2});
  EXPECT_EQ(torch::mm(one, one).scalar_type(), torch::kFloat);
  for (const torch::Tensor& parameter : model->parameters()) {
    EXPECT_EQ(parameter.scalar_type(), torch::kFloat);
  }
}

TEST(Model, WidthScalesTheChannelsOfEveryLayer) {
  const auto half = make_model("resnet18", {.width_factor = 0.5});
  // Convolutions have a quarter of the parameters, norms and the linear layer about half.
  EXPECT_EQ(num_parameters(*half), 2'797'610);
  EXPECT_LT(num_parameters(*make_model("small-cnn", {.width_factor = 0.5})), 32'330 / 2);
}

TEST(Model, TheSameSeedGivesTheSameWeights) {
  const auto weights = [](std::uint64_t seed) {
    torch::manual_seed(seed);
    return torch::nn::utils::parameters_to_vector(
        make_model("resnet18", {.width_factor = 0.125})->parameters());
  };
  EXPECT_TRUE(torch::equal(weights(3), weights(3)));
  EXPECT_FALSE(torch::equal(weights(3), weights(4)));
}

class ModelLearns : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelLearns, AFewStepsOverfitOneBatch) {
  torch::manual_seed(1);
  const double factor = GetParam().starts_with("resnet") ? 0.125 : 1.0;
  // The output of fast-cnn is divided by 9.
  const double learning_rate = GetParam() == "fast-cnn" ? 1.0 : 0.05;
  const auto model = make_model(GetParam(), {.height = 12, .width = 12, .width_factor = factor});
  const torch::Tensor images = torch::randn({10, 3, 12, 12});
  const torch::Tensor labels = torch::arange(10);
  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(learning_rate).momentum(0.9));
  double loss_value = 0.0;
  for (int step = 0; step < 30; ++step) {
    torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(images), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    loss_value = loss.item<double>();
    if (step == 0) {
      EXPECT_GT(loss_value, 1.5);
    }
  }
  EXPECT_LT(loss_value, 0.05);
}

INSTANTIATE_TEST_SUITE_P(All, ModelLearns, ::testing::ValuesIn(model_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Training twice on the same number of threads gives the same bits.
TEST(Model, TrainingIsReproducible) {
  const auto train = [] {
    torch::manual_seed(2);
    const auto model = make_model("small-cnn", {.channels = 1, .height = 28, .width = 28});
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 5; ++step) {
      const torch::Tensor images = torch::randn({64, 1, 28, 28});
      const torch::Tensor labels = torch::randint(10, {64}, torch::kInt64);
      torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(images), labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    return torch::nn::utils::parameters_to_vector(model->parameters()).detach();
  };
  EXPECT_TRUE(torch::equal(train(), train()));
}

TEST(Model, RefusesUnknownNamesAndSizesOutOfRange) {
  using ::testing::HasSubstr;
  using ::testing::ThrowsMessage;
  EXPECT_THAT([] { make_model("vgg", {}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("got vgg")));
  EXPECT_THAT([] { make_model("small-cnn", {.height = 4}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("height must be at least 8, got 4")));
  EXPECT_THAT([] { make_model("resnet18", {.width_factor = 0.0}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("width_factor")));
  EXPECT_THROW(make_model("resnet18", {.num_classes = 1}), std::invalid_argument);
}

}  // namespace tamis::training::model_test
