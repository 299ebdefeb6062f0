#include "training/models/model.h"

#include <torch/torch.h>

#include "base/check.h"
#include "training/models/model_names.h"
#include "training/models/resnet.h"
#include "training/models/small_cnn.h"

namespace tamis::training {

std::shared_ptr<Model> make_model(const std::string& name, const ModelOptions& options) {
  detail::require(options.channels >= 1, "Model", "channels", "at least 1", options.channels);
  detail::require(options.height >= 8, "Model", "height", "at least 8", options.height);
  detail::require(options.width >= 8, "Model", "width", "at least 8", options.width);
  detail::require(options.num_classes >= 2, "Model", "num_classes", "at least 2",
                  options.num_classes);
  detail::require(options.width_factor > 0.0 && options.width_factor <= 16.0, "Model",
                  "width_factor", "in (0, 16]", options.width_factor);
  if (name == "small-cnn") return std::make_shared<SmallCnn>(options);
  if (name == "resnet18") return std::make_shared<ResNet>(ResNet::Depth::resnet18, options);
  if (name == "resnet50") return std::make_shared<ResNet>(ResNet::Depth::resnet50, options);
  throw std::invalid_argument(
      detail::concat("Model: name must be small-cnn, resnet18 or resnet50, got ", name));
}

std::vector<std::string> model_names() { return {"small-cnn", "resnet18", "resnet50"}; }

std::int64_t num_parameters(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace tamis::training
