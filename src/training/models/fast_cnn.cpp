#include "training/models/fast_cnn.h"

#include <torch/torch.h>

#include <algorithm>

#include "training/models/layers.h"

namespace tamis::training {

namespace {

constexpr std::int64_t kPatch = 2;          // side of the squares that are whitened
constexpr double kSmallestVariance = 5e-4;  // added, so that dark corners are not blown up
constexpr double kBiasFactor = 64.0;
constexpr double kOutputScale = 1.0 / 9.0;

std::int64_t num_directions(const ModelOptions& options) {
  return kPatch * kPatch * options.channels;
}

// Half the size, unless there is nothing left to halve.
torch::Tensor pool(const torch::Tensor& x) {
  return x.size(2) < 2 || x.size(3) < 2 ? x : torch::max_pool2d(x, 2);
}

// Its running statistics follow quickly, for there are few steps and the weights change fast.
torch::nn::BatchNorm2d norm(std::int64_t channels) {
  return torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(channels).momentum(0.4));
}

class GeluBlock final : public torch::nn::Module {
 public:
  GeluBlock(std::int64_t in, std::int64_t out)
      : Module("GeluBlock"),
        conv1_(conv(in, out, 3)),
        norm1_(norm(out)),
        conv2_(conv(out, out, 3)),
        norm2_(norm(out)) {
    register_module("conv1", conv1_);
    register_module("norm1", norm1_);
    register_module("conv2", conv2_);
    register_module("norm2", norm2_);
    const torch::NoGradGuard no_grad;
    for (auto* layer : {&conv1_, &conv2_}) {
      torch::Tensor weight = (*layer)->weight;
      torch::nn::init::dirac_(weight.narrow(0, 0, std::min(weight.size(0), weight.size(1))));
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const torch::Tensor x = torch::gelu(norm1_(pool(conv1_(input))));
    return torch::gelu(norm2_(conv2_(x)));
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d norm1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d norm2_;
};

}  // namespace

FastCnn::FastCnn(const ModelOptions& options)
    : Model("FastCnn", options),
      whitening_(torch::nn::Conv2dOptions(options.channels, 2 * num_directions(options), kPatch)
                     .bias(false)),
      classifier_(
          torch::nn::LinearOptions(scaled_channels(64, options.width_factor), options.num_classes)
              .bias(false)) {
  const std::int64_t directions = num_directions(options);
  register_module("whitening", whitening_);
  {
    const torch::NoGradGuard no_grad;
    // Before prepare(): the pixels themselves.
    whitening_->weight.copy_(
        torch::cat({torch::eye(directions), -torch::eye(directions)}).view_as(whitening_->weight));
  }
  whitening_->weight.requires_grad_(false);
  std::int64_t in = 2 * directions;
  for (const std::int64_t channels : {32, 64, 64}) {
    const std::int64_t out = scaled_channels(channels, options.width_factor);
    blocks_->push_back(std::make_shared<GeluBlock>(in, out));
    in = out;
  }
  register_module("blocks", blocks_);
  register_module("classifier", classifier_);
}

void FastCnn::prepare(const std::function<torch::Tensor()>& images) {
  const torch::NoGradGuard no_grad;
  const std::int64_t directions = whitening_->weight.size(0) / 2;
  const torch::Tensor patches = images()
                                    .unfold(2, kPatch, 1)
                                    .unfold(3, kPatch, 1)
                                    .permute({0, 2, 3, 1, 4, 5})
                                    .reshape({-1, directions})
                                    .to(torch::kDouble);
  const torch::Tensor covariance = patches.t().mm(patches) / static_cast<double>(patches.size(0));
  auto [variances, vectors] = torch::linalg_eigh(covariance);
  // An eigenvector may come with either sign; here its largest part is positive.
  const torch::Tensor largest = vectors.abs().argmax(0, true);
  vectors = vectors * vectors.gather(0, largest).sign();
  const torch::Tensor filters =
      (vectors / (variances + kSmallestVariance).sqrt())
          .flip({1})
          .t()
          .reshape({directions, whitening_->weight.size(1), kPatch, kPatch});
  whitening_->weight.copy_(torch::cat({filters, -filters}));
}

double FastCnn::learning_rate_factor(const std::string& parameter) const {
  return parameter.find("norm") != std::string::npos && parameter.ends_with("bias") ? kBiasFactor
                                                                                    : 1.0;
}

torch::Tensor FastCnn::compute(torch::Tensor images) {
  torch::Tensor x = torch::gelu(whitening_(images.contiguous(layout())));
  for (const auto& block : *blocks_) x = block->as<GeluBlock>()->forward(x);
  return x.amax({2, 3}) * kOutputScale;
}

}  // namespace tamis::training
