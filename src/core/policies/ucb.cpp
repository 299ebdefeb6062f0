// Raju et al., Accelerating Deep Learning with Dynamic Data Pruning.
#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class Ucb final : public BuiltInPolicy {
 public:
  using BuiltInPolicy::BuiltInPolicy;
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    return {.kept = input.scores.unscored_then_highest(num_kept(input), input.draw())};
  }
};

}  // namespace

std::unique_ptr<Policy> make_ucb(const OptionMap& options) {
  return std::make_unique<Ucb>("ucb", options);
}

}  // namespace tamis::detail
