#include "training/trainer/evaluation.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "training/data/batch.h"
#include "training/models/model.h"

namespace tamis::training {

namespace {

constexpr std::size_t kBatchSize = 500;

}  // namespace

std::optional<Evaluation> evaluate(Model& model, const Dataset& data, bool flips,
                                   const StopRequest& stop) {
  const torch::NoGradGuard no_grad;
  model.eval();
  double loss_sum = 0.0;
  std::int64_t num_correct = 0;
  std::vector<SampleIndex> indices;
  for (std::size_t begin = 0; begin < data.size(); begin += kBatchSize) {
    if (stop && stop()) return std::nullopt;
    indices.resize(std::min(kBatchSize, data.size() - begin));
    std::iota(indices.begin(), indices.end(), static_cast<SampleIndex>(begin));
    const Batch batch = make_batch(data, indices);
    torch::Tensor logits = model.forward(batch.data);
    if (flips) logits = (logits + model.forward(batch.data.flip({3}))) / 2;
    loss_sum += torch::nn::functional::cross_entropy(
                    logits, batch.target,
                    torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
                    .item<double>();
    num_correct += logits.argmax(1).eq(batch.target).sum().item<std::int64_t>();
  }
  const auto count = static_cast<double>(data.size());
  return Evaluation{.loss = loss_sum / count, .accuracy = static_cast<double>(num_correct) / count};
}

std::optional<std::vector<float>> evaluate_samples(Model& model, const Dataset& data,
                                                   std::span<const std::uint32_t> samples,
                                                   double label_smoothing,
                                                   const StopRequest& stop) {
  const torch::NoGradGuard no_grad;
  model.eval();
  const auto options = torch::nn::functional::CrossEntropyFuncOptions()
                           .label_smoothing(label_smoothing)
                           .reduction(torch::kNone);
  std::vector<float> losses;
  losses.reserve(samples.size());
  for (; !samples.empty(); samples = samples.subspan(std::min(kBatchSize, samples.size()))) {
    if (stop && stop()) return std::nullopt;
    const auto part = samples.first(std::min(kBatchSize, samples.size()));
    const Batch batch = make_batch(data, std::vector<SampleIndex>(part.begin(), part.end()));
    const torch::Tensor some =
        torch::nn::functional::cross_entropy(model.forward(batch.data), batch.target, options)
            .contiguous();
    losses.insert(losses.end(), some.data_ptr<float>(), some.data_ptr<float>() + some.numel());
  }
  return losses;
}

}  // namespace tamis::training
