#include "tamis/epoch_plan.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/random/shuffle.h"
#include "core/plan/weight_groups.h"

namespace tamis {

EpochPlan::EpochPlan(Selection selection, std::uint64_t seed, std::uint64_t epoch, bool pruning,
                     std::size_t homogeneous_batch_size)
    : selection_(std::move(selection)),
      size_(selection_.kept.count()),
      seed_(seed),
      epoch_(epoch),
      pruning_(pruning),
      homogeneous_batch_size_(homogeneous_batch_size) {}

Array<std::uint32_t> EpochPlan::make_order() const {
  auto order = detail::shuffled_positions(selection_.kept, size_, seed_, epoch_);
  if (homogeneous_batch_size_ == 0 || !detail::has_two_weights(selection_)) return order;
  detail::RandomStream random(seed_, epoch_, detail::Purpose::batch_order);
  return detail::group_by_weight(order, selection_.rescaled, homogeneous_batch_size_, random);
}

std::span<const std::uint32_t> EpochPlan::order() const {
  std::call_once(order_->made, [this] { order_->samples = make_order(); });
  return order_->samples;
}

void EpochPlan::copy_to(std::size_t begin, std::span<SampleIndex> out) const {
  if (begin > size() || out.size() > size() - begin) {
    throw std::out_of_range(detail::concat("EpochPlan: samples [", begin, ", ", begin + out.size(),
                                           ") must lie in a plan of ", size()));
  }
  std::copy_n(order().data() + begin, out.size(), out.data());
}

std::size_t EpochPlan::num_batches(std::size_t batch_size, bool drop_last) const {
  detail::require(batch_size >= 1, "EpochPlan", "batch_size", "at least 1", batch_size);
  return (size() + (drop_last ? 0 : batch_size - 1)) / batch_size;
}

namespace {

template <typename Index>
double mean_weight_of(const Selection& selection, std::span<const Index> indices) {
  const std::size_t n = selection.kept.size();
  std::size_t num_rescaled = 0;
  for (const Index index : indices) {
    if (static_cast<std::uint64_t>(index) >= n) {
      throw std::out_of_range(
          detail::concat("EpochPlan: index must be in [0, ", n, "), got ", index));
    }
    if (!selection.rescaled.empty()) {
      num_rescaled +=
          static_cast<std::size_t>(selection.rescaled.test(static_cast<std::size_t>(index)));
    }
  }
  if (num_rescaled == 0) return 1.0;
  const double share = static_cast<double>(num_rescaled) / static_cast<double>(indices.size());
  return 1.0 + share * (static_cast<double>(selection.rescale) - 1.0);
}

}  // namespace

double EpochPlan::mean_weight(std::span<const SampleIndex> indices) const {
  return mean_weight_of(selection_, indices);
}

double EpochPlan::mean_weight(std::span<const std::uint32_t> indices) const {
  return mean_weight_of(selection_, indices);
}

}  // namespace tamis
