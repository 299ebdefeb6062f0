#include <algorithm>

#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class Subset final : public BuiltInPolicy {
 public:
  using BuiltInPolicy::BuiltInPolicy;
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    const ScoreView& scores = input.scores;
    const std::uint64_t num_unscored = scores.num_samples() - scores.count(scores.scored());
    // The same draw in every epoch: equal scores at the border are to be settled once.
    return {.kept = scores.unscored_then_highest(std::max(num_kept(input), num_unscored),
                                                 {.seed = input.seed})};
  }
};

}  // namespace

std::unique_ptr<Policy> make_subset(const OptionMap& options) {
  return std::make_unique<Subset>("subset", options);
}

}  // namespace tamis::detail
