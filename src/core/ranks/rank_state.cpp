#include "core/ranks/rank_state.h"

#include <algorithm>

namespace tamis::detail {

RankState::RankState(Pruner pruner, std::shared_ptr<Communicator> communicator,
                     const DistributedOptions& distribution)
    : pruner_(std::move(pruner)),
      communicator_(std::move(communicator)),
      distribution_(distribution) {}

RankState::~RankState() = default;

void RankState::book(std::span<const std::uint32_t> indices, std::span<const float> losses) {
  if (indices.empty()) return;
  if (losses.size() == 1 && pruner_.scorer().needs() == LossKind::mean_loss) {
    pruner_.observe(indices, static_cast<double>(losses[0]));
  } else {
    pruner_.observe(indices, losses.first(indices.size()));
  }
}

std::span<const std::uint32_t> RankState::scored_samples(const RankPlan& plan, std::size_t begin,
                                                         std::size_t count) {
  indices_.clear();
  for (std::size_t j = begin; j < begin + count && !plan.is_padding(j); ++j) {
    indices_.push_back(plan.plan().order()[plan.slot(j)]);
  }
  return indices_;
}

std::uint64_t part_begin(std::uint64_t num_samples, std::size_t num_ranks, std::size_t rank) {
  return num_samples / num_ranks * rank + std::min<std::uint64_t>(rank, num_samples % num_ranks);
}

std::size_t shared_size(std::size_t num_selected, std::size_t num_ranks, Remainder remainder) {
  return (num_selected + (remainder == Remainder::pad ? num_ranks - 1 : 0)) / num_ranks;
}

}  // namespace tamis::detail
