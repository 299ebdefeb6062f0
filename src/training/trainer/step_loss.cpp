#include "training/trainer/step_loss.h"

#include <torch/torch.h>

#include "training/trainer/stopwatch.h"

namespace tamis::training {

namespace {

torch::Tensor weights_of(std::span<const std::uint32_t> indices, const EpochPlan& plan) {
  torch::Tensor weights = torch::empty({static_cast<std::int64_t>(indices.size())});
  float* const values = weights.data_ptr<float>();
  for (std::size_t k = 0; k < indices.size(); ++k) values[k] = plan.weight(indices[k]);
  return weights;
}

}  // namespace

std::span<const float> StepLoss::sample_losses() const {
  if (!losses.defined()) return {};
  return {losses.data_ptr<float>(), static_cast<std::size_t>(losses.numel())};
}

StepLoss make_step_loss(const torch::Tensor& logits, const torch::Tensor& labels,
                        const EpochPlan& plan, std::span<const std::uint32_t> indices,
                        const StepLossOptions& options) {
  auto cross_entropy =
      torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(options.label_smoothing);
  const bool is_weighted = !plan.selection().rescaled.empty();
  StepLoss loss;
  if (!options.per_sample) {
    loss.objective = torch::nn::functional::cross_entropy(logits, labels, cross_entropy);
    loss.mean_loss = loss.objective.item<double>();
    if (options.with_losses) {
      loss.losses = torch::nn::functional::cross_entropy(logits.detach(), labels,
                                                         cross_entropy.reduction(torch::kNone))
                        .contiguous();
    }
    if (is_weighted) {
      const Stopwatch watch;
      const double weight = plan.mean_weight(indices);
      loss.prune_seconds = watch.seconds();
      loss.objective = loss.objective * weight;
    }
    return loss;
  }
  const torch::Tensor losses =
      torch::nn::functional::cross_entropy(logits, labels, cross_entropy.reduction(torch::kNone));
  loss.losses = losses.detach().contiguous();
  loss.mean_loss = loss.losses.mean().item<double>();
  if (is_weighted) {
    const Stopwatch watch;
    const torch::Tensor weights = weights_of(indices, plan);
    loss.prune_seconds = watch.seconds();
    loss.objective = (losses * weights).mean();
  } else {
    loss.objective = losses.mean();
  }
  return loss;
}

}  // namespace tamis::training
