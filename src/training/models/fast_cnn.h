// FastCnn: a classifier that learns small colour images well in few epochs.
#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "training/models/model.h"

namespace tamis::training {

// In the spirit of published speed runs on CIFAR-10 (Page's DAWNBench entry, Balsam's hlb-CIFAR10,
// Jordan's airbench): a first convolution of 2 x 2 pixels that whitens them and stays as it is;
// three blocks of convolution 3 x 3, max pooling, batch norm, GELU, convolution, batch norm, GELU
// (32, 64 and 64 channels); the largest value of each channel; a linear layer. Convolutions begin
// as the identity, and the biases of the norms learn 64 times as fast as the rest.
class FastCnn final : public Model {
 public:
  explicit FastCnn(const ModelOptions& options);

  // Whitens what these images consist of.
  void prepare(const std::function<torch::Tensor()>& images) override;
  double learning_rate_factor(const std::string& parameter) const override;

  torch::nn::Linear last_layer() const override { return classifier_; }

 private:
  torch::Tensor compute(torch::Tensor images) override;

  torch::nn::Conv2d whitening_;  // not trained, so that no gradient goes back through the images
  torch::nn::ModuleList blocks_;
  torch::nn::Linear classifier_;
};

}  // namespace tamis::training
