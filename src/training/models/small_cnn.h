// SmallCnn: a classifier that trains in seconds per epoch on two cores.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>

#include "training/models/model.h"

namespace tamis::training {

// Squares of 2 x 2 pixels become channels, so that no layer runs at full resolution; then two times
// convolution 3 x 3, max pooling, batch norm and ReLU (32 and 64 channels); then a linear layer.
class SmallCnn final : public Model {
 public:
  explicit SmallCnn(const ModelOptions& options);

  torch::nn::Linear last_layer() const override { return classifier_; }

 private:
  torch::Tensor compute(torch::Tensor images) override;

  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d norm1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d norm2_;
  torch::nn::Linear classifier_;
};

}  // namespace tamis::training
