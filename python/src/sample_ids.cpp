#include "sample_ids.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tamis::python {

BatchIds::BatchIds(std::span<const SampleIndex> ids) : indices_(ids) {
  if (ids.empty()) return;
  const SampleIndex part = ids[0] >> kIndexBits;
  const bool is_one_epoch =
      std::all_of(ids.begin(), ids.end(), [&](SampleIndex id) { return id >> kIndexBits == part; });
  if (part <= 0 && is_one_epoch)
    return;  // plain indices, or negative ones, which observe() refuses
  if (!is_one_epoch) {
    throw std::invalid_argument(
        "update: the ids of a batch must be of one epoch, got several; update the batches of two "
        "epochs one by one");
  }
  epoch_ = static_cast<std::uint64_t>(part) - 1;
  storage_.reserve(ids.size());
  for (const SampleIndex id : ids) storage_.push_back(id & kIndexMask);
  indices_ = storage_;
}

PastWeights::PastWeights(const EpochPlan& plan)
    : epoch_(plan.epoch()),
      first_sample_(plan.view().first_sample),
      num_samples_(plan.selection().kept.size()),
      rescale_(plan.selection().rescale),
      rescaled_(plan.selection().rescaled) {}

float PastWeights::weight_of(SampleIndex sample) const {
  const std::uint64_t index = static_cast<std::uint64_t>(sample) - first_sample_;
  if (index >= num_samples_) {
    throw std::out_of_range("update: index " + std::to_string(sample) + " is not in the data set");
  }
  const bool is_rescaled = !rescaled_.empty() && rescaled_.test(static_cast<std::size_t>(index));
  return is_rescaled ? rescale_ : 1.0F;
}

double PastWeights::mean_weight_of(std::span<const SampleIndex> samples) const {
  double sum = 0.0;
  for (const SampleIndex sample : samples) sum += static_cast<double>(weight_of(sample));
  return samples.empty() ? 1.0 : sum / static_cast<double>(samples.size());
}

}  // namespace tamis::python
