#include "tamis/policies/random.h"

#include "base/check.h"
#include "base/rounding.h"

namespace tamis {

namespace {

enum class Renewal { once, every_epoch };

class Random final : public Policy {
 public:
  Random(const RandomOptions& options, Renewal renewal) : options_(options), renewal_(renewal) {}

  Spec spec() const override {
    return {renewal_ == Renewal::once ? "random" : "random-dynamic",
            {{"prune_ratio", options_.prune_ratio}}};
  }
  bool uses_scores() const override { return false; }
  // The subset of a whole run cannot follow a ratio that changes.
  double max_prune_ratio() const override {
    return renewal_ == Renewal::once ? 0.0 : kMaxAdjustedRatio;
  }

  Selection select(const PolicyInput& input) const override {
    const double keep = 1.0 - input.prune_ratio.value_or(options_.prune_ratio);
    const Draw draw{.seed = input.seed, .epoch = renewal_ == Renewal::once ? 0 : input.epoch};
    return {.kept =
                input.scores.choose(detail::floor_share(keep, input.scores.num_samples()), draw)};
  }

 private:
  RandomOptions options_;
  Renewal renewal_;
};

std::unique_ptr<Policy> make(const RandomOptions& options, Renewal renewal) {
  auto policy = std::make_unique<Random>(options, renewal);
  detail::require(options.prune_ratio >= 0.0 && options.prune_ratio < 1.0, policy->spec().name,
                  "prune_ratio", "in [0, 1)", options.prune_ratio);
  return policy;
}

}  // namespace

std::unique_ptr<Policy> make_random(const RandomOptions& options) {
  return make(options, Renewal::once);
}

std::unique_ptr<Policy> make_random_dynamic(const RandomOptions& options) {
  return make(options, Renewal::every_epoch);
}

}  // namespace tamis
