// Models: image classifiers, written with torch::nn.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tamis::training {

struct ModelOptions {
  std::int64_t channels = 3;
  std::int64_t height = 32;
  std::int64_t width = 32;
  std::int64_t num_classes = 10;
  // Multiplies the number of channels of every layer, rounded to a multiple of 8; above 0.
  double width_factor = 1.0;
  // Memory layout of the feature maps: NHWC, which oneDNN computes in, or NCHW.
  bool channels_last = true;
  // Convolutions and linear layers compute in bfloat16 (autocast); weights stay float32.
  bool bfloat16 = false;
};

// Maps images [B, C, H, W] to logits [B, num_classes], float32 in every precision.
class Model : public torch::nn::Module {
 public:
  torch::Tensor forward(const torch::Tensor& images);

  // What the last layer, which is linear, is given: [B, D], float32.
  torch::Tensor features(const torch::Tensor& images);
  virtual torch::nn::Linear last_layer() const = 0;

  // Sets what is computed from the training images and not trained; most models have nothing and do
  // not ask for them. `images` gives some, normalised, [N, C, H, W].
  virtual void prepare(const std::function<torch::Tensor()>& /*images*/) {}
  // How much faster than the others this parameter learns; its weight decay falls by as much.
  virtual double learning_rate_factor(const std::string& /*parameter*/) const { return 1.0; }

 protected:
  Model(const std::string& name, const ModelOptions& options);

  at::MemoryFormat layout() const { return layout_; }

 private:
  // The features.
  virtual torch::Tensor compute(torch::Tensor images) = 0;

  at::MemoryFormat layout_;
  bool bfloat16_;
};

// `name` is one of model_names(). Weights come from torch's global generator: call
// torch::manual_seed first. Throws std::invalid_argument for another name or an option out of
// range.
std::shared_ptr<Model> make_model(const std::string& name, const ModelOptions& options);

// Number of trainable values.
std::int64_t num_parameters(const torch::nn::Module& module);

}  // namespace tamis::training
