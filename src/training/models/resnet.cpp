#include "training/models/resnet.h"

#include <torch/torch.h>

#include <array>

#include "training/models/layers.h"

namespace tamis::training {

namespace {

// A residual block: convolutions with batch norm, plus the input, projected where the shape
// differs.
class ResidualBlock : public torch::nn::Module {
 public:
  // Two 3 x 3 convolutions.
  static std::shared_ptr<ResidualBlock> basic(std::int64_t in, std::int64_t out,
                                              std::int64_t stride) {
    return std::make_shared<ResidualBlock>(
        std::vector<torch::nn::Conv2d>{conv(in, out, 3, stride), conv(out, out, 3)}, in, out,
        stride);
  }
  // 1 x 1, 3 x 3 and 1 x 1, the last with four times the channels.
  static std::shared_ptr<ResidualBlock> bottleneck(std::int64_t in, std::int64_t middle,
                                                   std::int64_t stride) {
    return std::make_shared<ResidualBlock>(
        std::vector<torch::nn::Conv2d>{conv(in, middle, 1), conv(middle, middle, 3, stride),
                                       conv(middle, 4 * middle, 1)},
        in, 4 * middle, stride);
  }

  ResidualBlock(std::vector<torch::nn::Conv2d> convs, std::int64_t in, std::int64_t out,
                std::int64_t stride)
      : Module("ResidualBlock"), convs_(std::move(convs)) {
    for (std::size_t i = 0; i < convs_.size(); ++i) {
      register_module("conv" + std::to_string(i + 1), convs_[i]);
      norms_.push_back(register_module("norm" + std::to_string(i + 1),
                                       torch::nn::BatchNorm2d(convs_[i]->options.out_channels())));
    }
    if (stride != 1 || in != out) {
      shortcut_ = register_module(
          "shortcut", torch::nn::Sequential(conv(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = input;
    for (std::size_t i = 0; i < convs_.size(); ++i) {
      x = norms_[i](convs_[i](x));
      if (i + 1 < convs_.size()) x = torch::relu(x);
    }
    return torch::relu(x + (shortcut_.is_empty() ? input : shortcut_->forward(input)));
  }

 private:
  std::vector<torch::nn::Conv2d> convs_;
  std::vector<torch::nn::BatchNorm2d> norms_;
  torch::nn::Sequential shortcut_ = nullptr;
};

struct Stage {
  std::int64_t channels;
  std::int64_t stride;
  int basic_blocks;
  int bottlenecks;
};

constexpr std::array<Stage, 4> kStages{
    {{64, 1, 2, 3}, {128, 2, 2, 4}, {256, 2, 2, 6}, {512, 2, 2, 3}}};

// 1 for basic blocks, 4 for bottlenecks.
std::int64_t expansion(ResNet::Depth depth) { return depth == ResNet::Depth::resnet18 ? 1 : 4; }

torch::nn::Sequential make_stages(ResNet::Depth depth, double factor) {
  torch::nn::Sequential stages;
  std::int64_t in = scaled_channels(64, factor);
  for (const Stage& stage : kStages) {
    const std::int64_t channels = scaled_channels(stage.channels, factor);
    const int blocks = depth == ResNet::Depth::resnet18 ? stage.basic_blocks : stage.bottlenecks;
    for (int i = 0; i < blocks; ++i) {
      const std::int64_t stride = i == 0 ? stage.stride : 1;
      stages->push_back(depth == ResNet::Depth::resnet18
                            ? ResidualBlock::basic(in, channels, stride)
                            : ResidualBlock::bottleneck(in, channels, stride));
      in = channels * expansion(depth);
    }
  }
  return stages;
}

}  // namespace

ResNet::ResNet(Depth depth, const ModelOptions& options)
    : Model("ResNet", options),
      stem_(conv(options.channels, scaled_channels(64, options.width_factor), 3)),
      norm_(scaled_channels(64, options.width_factor)),
      stages_(make_stages(depth, options.width_factor)),
      classifier_(scaled_channels(512, options.width_factor) * expansion(depth),
                  options.num_classes) {
  register_module("stem", stem_);
  register_module("norm", norm_);
  register_module("stages", stages_);
  register_module("classifier", classifier_);
  // He initialisation, as in the paper; the linear layer keeps torch's own.
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* layer = module->as<torch::nn::Conv2d>()) {
      torch::nn::init::kaiming_normal_(layer->weight, 0.0, torch::kFanOut, torch::kReLU);
    }
  }
}

torch::Tensor ResNet::compute(torch::Tensor images) {
  torch::Tensor x = images.contiguous(layout());
  x = torch::relu(norm_(stem_(x)));
  x = stages_->forward(x);
  return torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
}

}  // namespace tamis::training
