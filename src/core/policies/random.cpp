#include "tamis/policies/random.h"

#include "base/check.h"
#include "base/random/subset.h"
#include "base/rounding.h"
#include "core/policies/part_subset.h"

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
    const std::size_t n = input.scores.size();
    const std::uint64_t epoch = renewal_ == Renewal::once ? 0 : input.epoch;
    detail::RandomStream random(input.seed, epoch, detail::Purpose::selection);
    const double ratio = input.prune_ratio.value_or(options_.prune_ratio);
    return {.kept = detail::choose(n, detail::floor_share(1.0 - ratio, n), random)};
  }

  Selection select_part(const PartInput& input) const override {
    PartInput drawn = input;
    if (renewal_ == Renewal::once) drawn.local.epoch = 0;
    const std::uint64_t num_kept =
        detail::floor_share(1.0 - options_.prune_ratio, input.num_samples);
    return {.kept = detail::choose_part(Bitmap(input.local.scores.size(), true), input.num_samples,
                                        num_kept, drawn, detail::Purpose::selection)};
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
