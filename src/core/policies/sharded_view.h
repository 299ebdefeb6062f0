// ShardedView: a rank's part of scores that are spread over ranks.
#pragma once

#include "core/plan/plan_view.h"
#include "tamis/communicator.h"

namespace tamis::detail {

// Which samples are chosen does not depend on how the data set is cut into parts.
class ShardedView final : public PlanView {
 public:
  ShardedView(std::span<const float> scores, std::uint64_t first, std::uint64_t num_samples,
              Communicator& communicator)
      : PlanView(scores, first, num_samples), communicator_(communicator) {}

  using ScoreView::choose;
  void sum(std::span<std::int64_t> numbers) const override { communicator_.all_reduce(numbers); }
  // Sends 88 bytes. The mean is rounded once.
  ScoreMean mean() const override;
  Bitmap choose(const Bitmap& candidates, std::uint64_t count, const Draw& draw) const override;
  ScoreGroups groups(const Bitmap& members, std::size_t num_groups) const override;
  void restore(const ClassDraws& draws, std::uint64_t seed, std::uint64_t epoch,
               Selection& selection) const override;

 private:
  Communicator& communicator_;
};

}  // namespace tamis::detail
