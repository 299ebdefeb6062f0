#include "training/models/model.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include "base/check.h"
#include "training/models/fast_cnn.h"
#include "training/models/model_names.h"
#include "training/models/resnet.h"
#include "training/models/small_cnn.h"

namespace tamis::training {

namespace {

// torch.autocast("cpu", torch.bfloat16) for the life of this object.
class Bfloat16Autocast {
 public:
  Bfloat16Autocast()
      : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
        type_before_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  Bfloat16Autocast(const Bfloat16Autocast&) = delete;
  Bfloat16Autocast& operator=(const Bfloat16Autocast&) = delete;
  ~Bfloat16Autocast() {
    // Weights that were converted are of no use after the next step.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_dtype(at::kCPU, type_before_);
    at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
  }

 private:
  bool was_enabled_;
  at::ScalarType type_before_;
};

}  // namespace

Model::Model(const std::string& name, const ModelOptions& options)
    : Module(name),
      layout_(options.channels_last ? at::MemoryFormat::ChannelsLast
                                    : at::MemoryFormat::Contiguous),
      bfloat16_(options.bfloat16) {}

torch::Tensor Model::forward(const torch::Tensor& images) {
  if (!bfloat16_) return last_layer()(compute(images));
  const Bfloat16Autocast autocast;
  return last_layer()(compute(images)).to(torch::kFloat);
}

torch::Tensor Model::features(const torch::Tensor& images) {
  if (!bfloat16_) return compute(images);
  const Bfloat16Autocast autocast;
  return compute(images).to(torch::kFloat);
}

std::shared_ptr<Model> make_model(const std::string& name, const ModelOptions& options) {
  detail::require(options.channels >= 1, "Model", "channels", "at least 1", options.channels);
  detail::require(options.height >= 8, "Model", "height", "at least 8", options.height);
  detail::require(options.width >= 8, "Model", "width", "at least 8", options.width);
  detail::require(options.num_classes >= 2, "Model", "num_classes", "at least 2",
                  options.num_classes);
  detail::require(options.width_factor > 0.0 && options.width_factor <= 16.0, "Model",
                  "width_factor", "in (0, 16]", options.width_factor);
  if (name == "small-cnn") return std::make_shared<SmallCnn>(options);
  if (name == "fast-cnn") return std::make_shared<FastCnn>(options);
  if (name == "resnet18") return std::make_shared<ResNet>(ResNet::Depth::resnet18, options);
  if (name == "resnet50") return std::make_shared<ResNet>(ResNet::Depth::resnet50, options);
  throw std::invalid_argument(
      detail::concat("Model: name must be small-cnn, fast-cnn, resnet18 or resnet50, got ", name));
}

std::vector<std::string> model_names() { return {"small-cnn", "fast-cnn", "resnet18", "resnet50"}; }

std::int64_t num_parameters(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) {
    if (parameter.requires_grad()) count += parameter.numel();
  }
  return count;
}

}  // namespace tamis::training
