// ResNet in its form for small images (CIFAR): a 3 x 3 stem and no max pooling.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "training/models/model.h"

namespace tamis::training {

// He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (2016). Four stages of 64,
// 128, 256 and 512 channels, of basic blocks (ResNet-18) or bottlenecks (ResNet-50).
class ResNet final : public Model {
 public:
  enum class Depth { resnet18, resnet50 };

  ResNet(Depth depth, const ModelOptions& options);

  torch::nn::Linear last_layer() const override { return classifier_; }

 private:
  torch::Tensor compute(torch::Tensor images) override;

  torch::nn::Conv2d stem_;
  torch::nn::BatchNorm2d norm_;
  torch::nn::Sequential stages_;
  torch::nn::Linear classifier_;
};

}  // namespace tamis::training
