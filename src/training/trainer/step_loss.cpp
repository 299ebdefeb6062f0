#include "training/trainer/step_loss.h"

#include <torch/torch.h>

#include <numeric>

#include "training/trainer/stopwatch.h"

namespace tamis::training {

std::span<const float> StepLoss::sample_losses() const {
  return {losses.const_data_ptr<float>(), static_cast<std::size_t>(losses.numel())};
}

StepLoss make_step_loss(const torch::Tensor& logits, const torch::Tensor& labels,
                        const EpochPlan& plan, std::size_t begin, const StepLossOptions& options) {
  const torch::Tensor losses =
      torch::nn::functional::cross_entropy(logits, labels,
                                           torch::nn::functional::CrossEntropyFuncOptions()
                                               .label_smoothing(options.label_smoothing)
                                               .reduction(torch::kNone));
  StepLoss loss{.objective = losses.mean(), .losses = losses.detach().contiguous()};
  const auto values = loss.sample_losses();
  loss.mean_loss =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  if (plan.selection().rescaled.empty()) return loss;
  const Stopwatch watch;
  if (options.per_sample) {
    const torch::Tensor weights = torch::empty_like(loss.losses);
    for (std::size_t k = 0; k < values.size(); ++k) {
      weights.mutable_data_ptr<float>()[k] = plan.weight(begin + k);
    }
    loss.prune_seconds = watch.seconds();
    loss.objective = (losses * weights).mean();
  } else {
    const double weight = plan.mean_weight(begin, values.size());
    loss.prune_seconds = watch.seconds();
    loss.objective = loss.objective * weight;
  }
  return loss;
}

}  // namespace tamis::training
