// Raju et al., Accelerating Deep Learning with Dynamic Data Pruning. The paper's constants could
// not be confirmed; the defaults are ours.
#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class EpsilonGreedy final : public BuiltInPolicy {
 public:
  using BuiltInPolicy::BuiltInPolicy;
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    const std::uint64_t count = num_kept(input);
    const std::uint64_t num_random = floor_share(option("epsilon"), count);
    Selection selection{.kept =
                            input.scores.unscored_then_highest(count - num_random, input.draw(0))};
    Bitmap rest(input.scores.size(), true);
    rest -= selection.kept;
    selection.kept |= input.scores.choose(rest, num_random, input.draw(1));
    return selection;
  }
};

}  // namespace

std::unique_ptr<Policy> make_epsilon_greedy(const OptionMap& options) {
  return std::make_unique<EpsilonGreedy>("epsilon-greedy", options);
}

}  // namespace tamis::detail
