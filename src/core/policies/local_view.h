// LocalView: the scores of a data set that are all in this process.
#pragma once

#include "core/plan/plan_view.h"

namespace tamis::detail {

class LocalView final : public PlanView {
 public:
  explicit LocalView(std::span<const float> scores) : PlanView(scores, 0, scores.size()) {}

  using ScoreView::choose;
  void sum(std::span<std::int64_t>) const override {}
  ScoreMean mean() const override;
  Bitmap choose(const Bitmap& candidates, std::uint64_t count, const Draw& draw) const override;
  ScoreGroups groups(const Bitmap& members, std::size_t num_groups) const override;
  void restore(const ClassDraws& draws, std::uint64_t seed, std::uint64_t epoch,
               Selection& selection) const override;
};

}  // namespace tamis::detail
