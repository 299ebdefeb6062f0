// Raju et al., Accelerating Deep Learning with Dynamic Data Pruning. The paper's constants could
// not be confirmed; the defaults are ours. UCB differs in its score, and explores nothing here.
#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class Greedy final : public BuiltInPolicy {
 public:
  Greedy(std::string name, const OptionMap& options, double epsilon)
      : BuiltInPolicy(std::move(name), options), epsilon_(epsilon) {}

  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    const std::uint64_t count = num_kept(input);
    const std::uint64_t num_random = floor_share(epsilon_, count);
    Selection selection{.kept =
                            input.scores.unscored_then_highest(count - num_random, input.draw(0))};
    if (epsilon_ == 0.0) return selection;
    Bitmap rest(input.scores.size(), true);
    rest -= selection.kept;
    selection.kept |= input.scores.choose(rest, num_random, input.draw(1));
    return selection;
  }

 private:
  double epsilon_;
};

}  // namespace

std::unique_ptr<Policy> make_epsilon_greedy(const OptionMap& options) {
  return std::make_unique<Greedy>("epsilon-greedy", options, options.at("epsilon"));
}

std::unique_ptr<Policy> make_ucb(const OptionMap& options) {
  return std::make_unique<Greedy>("ucb", options, 0.0);
}

}  // namespace tamis::detail
