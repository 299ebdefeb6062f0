// Raju et al., Accelerating Deep Learning with Dynamic Data Pruning. The paper's constants could
// not be confirmed; the defaults are ours.
#include "tamis/policies/epsilon_greedy.h"

#include "base/check.h"
#include "base/rounding.h"

namespace tamis {

namespace {

class EpsilonGreedy final : public Policy {
 public:
  explicit EpsilonGreedy(const EpsilonGreedyOptions& options) : options_(options) {}

  Spec spec() const override {
    return {"epsilon-greedy",
            {{"prune_ratio", options_.prune_ratio}, {"epsilon", options_.epsilon}}};
  }
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    const double keep = 1.0 - input.prune_ratio.value_or(options_.prune_ratio);
    const std::uint64_t num_kept = detail::floor_share(keep, input.scores.num_samples());
    const std::uint64_t num_random = detail::floor_share(options_.epsilon, num_kept);
    Selection selection{
        .kept = input.scores.unscored_then_highest(num_kept - num_random, input.draw(0))};
    Bitmap rest(input.scores.size(), true);
    rest -= selection.kept;
    selection.kept |= input.scores.choose(rest, num_random, input.draw(1));
    return selection;
  }

 private:
  EpsilonGreedyOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_epsilon_greedy(const EpsilonGreedyOptions& options) {
  detail::require(options.prune_ratio >= 0.0 && options.prune_ratio < 1.0, "epsilon-greedy",
                  "prune_ratio", "in [0, 1)", options.prune_ratio);
  detail::require(options.epsilon >= 0.0 && options.epsilon <= 1.0, "epsilon-greedy", "epsilon",
                  "in [0, 1]", options.epsilon);
  return std::make_unique<EpsilonGreedy>(options);
}

}  // namespace tamis
