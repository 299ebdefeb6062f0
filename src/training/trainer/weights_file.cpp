#include "training/trainer/weights_file.h"

#include <torch/torch.h>

#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "base/files/safetensors.h"

namespace tamis::training {

namespace {

using detail::concat;
using detail::SafetensorsReader;
using torch::optim::AdamW;
using torch::optim::AdamWParamState;
using torch::optim::SGD;
using torch::optim::SGDParamState;

constexpr std::string_view kWeightsFormat = "tamis-weights";
constexpr std::string_view kWeightsFormatVersion = "1";

// A tensor and its name in the file.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

std::string type_name(const torch::Tensor& tensor) {
  if (tensor.scalar_type() == torch::kFloat32) return "F32";
  if (tensor.scalar_type() == torch::kInt64) return "I64";
  throw std::runtime_error(
      concat("checkpoint: a tensor must be float32 or int64, got ", tensor.dtype().name()));
}

std::vector<NamedTensor> tensors_of(const torch::nn::Module& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_parameters()) {
    tensors.push_back({"model." + item.key(), item.value()});
  }
  for (const auto& item : model.named_buffers()) {
    tensors.push_back({"model." + item.key(), item.value()});
  }
  return tensors;
}

std::string_view optimizer_name(const torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<const SGD*>(&optimizer) != nullptr) return "sgd";
  if (dynamic_cast<const AdamW*>(&optimizer) != nullptr) return "adamw";
  throw std::logic_error("checkpoint: this optimiser cannot be saved");
}

std::string key_of(const std::string& parameter, std::string_view part) {
  return concat("optimizer.", parameter, ".", part);
}

// What the optimiser keeps of one parameter; nothing before its first step.
std::vector<NamedTensor> parts_of(torch::optim::Optimizer& optimizer, const std::string& name,
                                  const torch::Tensor& parameter) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  if (found == optimizer.state().end()) return {};
  if (optimizer_name(optimizer) == "sgd") {
    const auto& state = dynamic_cast<const SGDParamState&>(*found->second);
    if (!state.momentum_buffer().defined()) return {};
    return {{key_of(name, "momentum"), state.momentum_buffer()}};
  }
  const auto& state = dynamic_cast<const AdamWParamState&>(*found->second);
  return {{key_of(name, "step"), torch::tensor(state.step(), torch::kInt64)},
          {key_of(name, "mean"), state.exp_avg()},
          {key_of(name, "square"), state.exp_avg_sq()}};
}

// Reads the tensors of a verified file. Remembers which ones it gave.
class WeightsReader {
 public:
  explicit WeightsReader(const std::filesystem::path& path)
      : mapped_(path), file_(path.native(), mapped_.bytes()) {
    require("format", kWeightsFormat);
    require("format_version", kWeightsFormatVersion);
    file_.verify_data();
  }

  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

  // A copy, of the type, shape and memory layout of `like`.
  torch::Tensor read(const std::string& name, const torch::Tensor& like) {
    const detail::Tensor* const tensor = file_.find_tensor(name);
    if (tensor == nullptr) file_.fail(concat("tensor ", name, " is missing"));
    const std::vector<std::uint64_t> shape(like.sizes().begin(), like.sizes().end());
    if (tensor->dtype != type_name(like) || tensor->shape != shape) {
      file_.fail(concat("tensor ", name, " is of another type or shape than the model's"));
    }
    torch::Tensor values = torch::empty(like.sizes(), like.options().requires_grad(false));
    if (!tensor->bytes.empty()) {
      std::memcpy(values.data_ptr(), tensor->bytes.data(), tensor->bytes.size());
    }
    ++num_read_;
    return torch::empty_like(like, like.options().requires_grad(false)).copy_(values);
  }

  void require(std::string_view key, std::string_view value) const {
    const std::string* const found = file_.find_metadata(key);
    if (found != nullptr && *found == value) return;
    file_.fail(concat("field ", key, " must be ", value, ", got ",
                      found == nullptr ? "none" : std::string_view(*found)));
  }
  void check_all_read() const {
    if (num_read_ != file_.tensors().size()) file_.fail("has tensors that the model has not");
  }

 private:
  detail::MappedFile mapped_;
  SafetensorsReader file_;
  std::size_t num_read_ = 0;
};

// Null if the file has nothing of this parameter.
std::unique_ptr<torch::optim::OptimizerParamState> read_state(WeightsReader& file, bool is_sgd,
                                                              const std::string& name,
                                                              const torch::Tensor& parameter) {
  if (is_sgd) {
    if (!file.has(key_of(name, "momentum"))) return nullptr;
    auto state = std::make_unique<SGDParamState>();
    state->momentum_buffer(file.read(key_of(name, "momentum"), parameter));
    return state;
  }
  if (!file.has(key_of(name, "step"))) return nullptr;
  auto state = std::make_unique<AdamWParamState>();
  const torch::Tensor number = torch::tensor(std::int64_t{0}, torch::kInt64);
  state->step(file.read(key_of(name, "step"), number).item<std::int64_t>());
  state->exp_avg(file.read(key_of(name, "mean"), parameter));
  state->exp_avg_sq(file.read(key_of(name, "square"), parameter));
  return state;
}

}  // namespace

void save_weights(const std::filesystem::path& path, std::uint64_t step,
                  const torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
  std::vector<NamedTensor> all = tensors_of(model);
  for (const auto& item : model.named_parameters()) {
    for (NamedTensor& part : parts_of(optimizer, item.key(), item.value())) {
      all.push_back(std::move(part));
    }
  }
  std::vector<detail::Tensor> tensors;
  for (NamedTensor& named : all) {
    named.tensor = named.tensor.detach().contiguous();
    tensors.push_back({named.name,
                       type_name(named.tensor),
                       {named.tensor.sizes().begin(), named.tensor.sizes().end()},
                       {static_cast<const std::byte*>(named.tensor.data_ptr()),
                        static_cast<std::size_t>(named.tensor.nbytes())}});
  }
  const detail::SafetensorsWriter writer({{"format", std::string(kWeightsFormat)},
                                          {"format_version", std::string(kWeightsFormatVersion)},
                                          {"step", std::to_string(step)},
                                          {"optimizer", std::string(optimizer_name(optimizer))}},
                                         std::move(tensors));
  detail::AtomicFile file(path, writer.size());
  writer.write(
      [&](std::uint64_t offset, std::span<const std::byte> bytes) { file.write(offset, bytes); });
  file.commit();
}

void load_weights(const std::filesystem::path& path, std::uint64_t step, torch::nn::Module& model,
                  torch::optim::Optimizer& optimizer) {
  WeightsReader file(path);
  file.require("optimizer", optimizer_name(optimizer));
  file.require("step", std::to_string(step));
  const bool is_sgd = optimizer_name(optimizer) == "sgd";
  std::vector<std::pair<torch::Tensor, torch::Tensor>> weights;
  for (const NamedTensor& named : tensors_of(model)) {
    weights.emplace_back(named.tensor, file.read(named.name, named.tensor));
  }
  ska::flat_hash_map<void*, std::unique_ptr<torch::optim::OptimizerParamState>> states;
  for (const auto& item : model.named_parameters()) {
    auto state = read_state(file, is_sgd, item.key(), item.value());
    if (state) states[item.value().unsafeGetTensorImpl()] = std::move(state);
  }
  file.check_all_read();
  const torch::NoGradGuard no_grad;
  for (auto& [to, from] : weights) to.copy_(from);
  optimizer.state() = std::move(states);
}

}  // namespace tamis::training
