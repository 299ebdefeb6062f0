#include "tamis/rank_plan.h"

#include <stdexcept>

#include "base/check.h"

namespace tamis {

std::size_t RankPlan::num_batches(std::size_t batch_size, bool drop_last) const {
  detail::require(batch_size >= 1, "RankPlan", "batch_size", "at least 1", batch_size);
  return (size_ + (drop_last ? 0 : batch_size - 1)) / batch_size;
}

void RankPlan::check_range(std::size_t begin, std::size_t count) const {
  if (begin > size_ || count > size_ - begin) {
    throw std::out_of_range(detail::concat("RankPlan: samples [", begin, ", ", begin + count,
                                           ") must lie in a plan of ", size_));
  }
}

void RankPlan::copy_to(std::size_t begin, std::span<SampleIndex> out) const {
  check_range(begin, out.size());
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = sample(begin + k);
}

double RankPlan::mean_weight(std::size_t begin, std::size_t count) const {
  check_range(begin, count);
  const Selection& selection = plan_->selection();
  if (count == 0 || selection.rescaled.empty()) return 1.0;
  std::size_t num_rescaled = 0;
  for (std::size_t j = begin; j < begin + count; ++j) {
    num_rescaled += static_cast<std::size_t>(selection.rescaled.test(index(j)));
  }
  const double share = static_cast<double>(num_rescaled) / static_cast<double>(count);
  return 1.0 + share * (static_cast<double>(selection.rescale) - 1.0);
}

RankPlan RankPlan::of_rank(std::size_t rank) const {
  RankPlan plan = *this;
  plan.view_.offset = rank;
  return plan;
}

}  // namespace tamis
