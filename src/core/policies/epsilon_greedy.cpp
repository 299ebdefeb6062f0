// Raju et al., Accelerating Deep Learning with Dynamic Data Pruning. The paper's constants could
// not be confirmed; the defaults are ours.
#include "tamis/policies/epsilon_greedy.h"

#include "base/check.h"
#include "base/random/subset.h"
#include "base/rounding.h"
#include "core/policies/part_subset.h"
#include "core/policies/top_k.h"

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
    const std::size_t n = input.scores.size();
    const double keep = 1.0 - input.prune_ratio.value_or(options_.prune_ratio);
    const auto num_kept = static_cast<std::size_t>(detail::floor_share(keep, n));
    const auto num_random =
        static_cast<std::size_t>(detail::floor_share(options_.epsilon, num_kept));
    detail::RandomStream random(input.seed, input.epoch, detail::Purpose::selection);
    Selection selection{
        .kept = detail::unscored_then_highest(input.scores, num_kept - num_random, random)};
    Bitmap rest(n, true);
    rest -= selection.kept;
    detail::RandomStream exploration(input.seed, input.epoch, detail::Purpose::exploration);
    selection.kept |= detail::choose(rest, n - (num_kept - num_random), num_random, exploration);
    return selection;
  }

  Selection select_part(const PartInput& input) const override {
    const std::uint64_t num_kept =
        detail::floor_share(1.0 - options_.prune_ratio, input.num_samples);
    const std::uint64_t num_random = detail::floor_share(options_.epsilon, num_kept);
    Selection selection{.kept = detail::unscored_then_highest_part(num_kept - num_random, input,
                                                                   detail::Purpose::selection)};
    Bitmap rest(input.local.scores.size(), true);
    rest -= selection.kept;
    selection.kept |= detail::choose_part(rest, input.num_samples - (num_kept - num_random),
                                          num_random, input, detail::Purpose::exploration);
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
