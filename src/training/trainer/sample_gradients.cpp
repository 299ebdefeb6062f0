#include "training/trainer/sample_gradients.h"

#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/torch.h>

#include <stdexcept>
#include <utility>

#include "training/models/model.h"

namespace tamis::training {

namespace {

namespace vmap = at::functorch;

// A level of vmap for the life of this object.
class BatchLevel {
 public:
  explicit BatchLevel(std::int64_t size)
      : level_(vmap::initAndPushDynamicLayer(vmap::TransformType::Vmap, c10::SymInt(size),
                                             vmap::RandomnessType::Error)) {}
  BatchLevel(const BatchLevel&) = delete;
  BatchLevel& operator=(const BatchLevel&) = delete;
  ~BatchLevel() { vmap::popDynamicLayerAndDeleteMetadata(); }

  // Row i of `tensor` for sample i.
  torch::Tensor split(const torch::Tensor& tensor) const {
    return vmap::addBatchDim(tensor, 0, level_);
  }
  // The way back.
  static torch::Tensor join(const torch::Tensor& tensor) {
    const auto* const batched = vmap::maybeGetBatchedImpl(tensor);
    if (batched == nullptr) throw std::logic_error("the result does not depend on the sample");
    return batched->value().movedim(batched->bdim(), 0);
  }

 private:
  std::int64_t level_;
};

// Where the layers keep their parameters: assigning to these is what makes a layer use others.
std::vector<torch::Tensor*> trained_parameters(Model& model) {
  std::vector<torch::Tensor*> parameters;
  const auto add = [&](torch::Tensor& parameter) {
    if (parameter.defined() && parameter.requires_grad()) parameters.push_back(&parameter);
  };
  const auto add_layer = [&](auto* layer) {
    add(layer->weight);
    add(layer->bias);
  };
  for (const auto& module : model.modules(/*include_self=*/true)) {
    if (auto* conv = module->as<torch::nn::Conv2d>()) {
      add_layer(conv);
    } else if (auto* linear = module->as<torch::nn::Linear>()) {
      add_layer(linear);
    } else if (auto* norm = module->as<torch::nn::BatchNorm2d>()) {
      add_layer(norm);
    } else if (!module->parameters(/*recurse=*/false).empty()) {
      throw std::logic_error("gradients of each sample: no rule for the layer " + module->name());
    }
  }
  return parameters;
}

// Gives every sample a copy of the parameters; the model has its own again afterwards.
class OwnParameters {
 public:
  OwnParameters(Model& model, std::int64_t num_samples) : places_(trained_parameters(model)) {
    for (torch::Tensor* const place : places_) {
      kept_.push_back(*place);
      std::vector<std::int64_t> shape = place->sizes().vec();
      shape.insert(shape.begin(), num_samples);
      copies_.push_back(place->detach().expand(shape).clone().requires_grad_(true));
    }
  }
  OwnParameters(const OwnParameters&) = delete;
  OwnParameters& operator=(const OwnParameters&) = delete;
  ~OwnParameters() {
    for (std::size_t k = 0; k < places_.size(); ++k) *places_[k] = kept_[k];
  }

  void use(const BatchLevel& level) {
    for (std::size_t k = 0; k < places_.size(); ++k) *places_[k] = level.split(copies_[k]);
  }
  const std::vector<torch::Tensor>& copies() const { return copies_; }

 private:
  std::vector<torch::Tensor*> places_;
  std::vector<torch::Tensor> kept_;
  std::vector<torch::Tensor> copies_;
};

}  // namespace

std::vector<float> gradient_norms(Model& model, const Batch& batch, double label_smoothing) {
  model.eval();
  const std::int64_t count = batch.data.size(0);
  OwnParameters parameters(model, count);
  torch::Tensor logits;
  {
    const BatchLevel level(count);
    parameters.use(level);
    // A batch of one for every sample.
    logits = BatchLevel::join(model.forward(level.split(batch.data.unsqueeze(1)))).squeeze(1);
  }
  torch::nn::functional::cross_entropy(logits, batch.target,
                                       torch::nn::functional::CrossEntropyFuncOptions()
                                           .label_smoothing(label_smoothing)
                                           .reduction(torch::kSum))
      .backward();
  torch::Tensor squares = torch::zeros({count});
  for (const torch::Tensor& copy : parameters.copies()) {
    squares += copy.grad().flatten(1).square().sum(1);
  }
  const torch::Tensor norms = squares.sqrt().contiguous();
  return {norms.data_ptr<float>(), norms.data_ptr<float>() + count};
}

}  // namespace tamis::training
