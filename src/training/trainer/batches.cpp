#include "training/trainer/batches.h"

#include <torch/torch.h>

#include <algorithm>

namespace tamis::training {

std::size_t batch_length(std::size_t left, std::size_t batch_size) {
  return batch_size > 1 && left == batch_size + 1 ? left : std::min(left, batch_size);
}

std::size_t num_steps(const EpochPlan& plan, std::size_t batch_size) {
  const std::size_t num_batches = plan.num_batches(batch_size);
  const bool joins_last = batch_size > 1 && num_batches > 1 && plan.size() % batch_size == 1;
  return joins_last ? num_batches - 1 : num_batches;
}

Batch load_batch(const Dataset& data, std::span<const SampleIndex> samples,
                 const TrainingConfig& settings, std::uint64_t epoch) {
  if (settings.augment == AugmentKind::none) return make_batch(data, samples);
  const bool translates = settings.augment == AugmentKind::translate_flip;
  return make_batch(data, samples,
                    {.padding = translates ? 2 : 4,
                     .mirrors_border = translates,
                     .flip = settings.augment != AugmentKind::crop,
                     .seed = settings.seed},
                    epoch);
}

void clear_gradients(const torch::nn::Module& model) {
  for (torch::Tensor& parameter : model.parameters()) parameter.mutable_grad().reset();
}

}  // namespace tamis::training
