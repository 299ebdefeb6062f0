#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class RandomDynamic : public BuiltInPolicy {
 public:
  using BuiltInPolicy::BuiltInPolicy;
  bool uses_scores() const override { return false; }
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }
  Selection select(const PolicyInput& input) const override {
    return {.kept = input.scores.choose(num_kept(input), input.draw())};
  }
};

class Random final : public RandomDynamic {
 public:
  using RandomDynamic::RandomDynamic;
  // The subset of a whole run cannot follow a ratio that changes.
  double max_prune_ratio() const override { return 0.0; }
  Selection select(const PolicyInput& input) const override {
    return RandomDynamic::select(
        {.scores = input.scores, .seed = input.seed, .prune_ratio = input.prune_ratio});
  }
};

}  // namespace

std::unique_ptr<Policy> make_random(const OptionMap& options) {
  return std::make_unique<Random>("random", options);
}

std::unique_ptr<Policy> make_random_dynamic(const OptionMap& options) {
  return std::make_unique<RandomDynamic>("random-dynamic", options);
}

}  // namespace tamis::detail
