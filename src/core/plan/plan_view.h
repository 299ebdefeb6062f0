// PlanView: a ScoreView with what the planner needs beyond what a policy may ask.
#pragma once

#include "core/plan/class_floor.h"
#include "tamis/score_view.h"

namespace tamis::detail {

class PlanView : public ScoreView {
 public:
  // Collective: puts restored[c].num_wanted samples of every class c back into the selection, and
  // deals out the weights of the classes that have a number in rescaled. (seed, epoch) name the
  // random choices.
  virtual void restore(const ClassDraws& draws, std::uint64_t seed, std::uint64_t epoch,
                       Selection& selection) const = 0;

 protected:
  using ScoreView::ScoreView;
};

}  // namespace tamis::detail
