// Raju et al., Accelerating Deep Learning with Dynamic Data Pruning.
#include "tamis/policies/ucb.h"

#include "base/check.h"
#include "base/rounding.h"

namespace tamis {

namespace {

class Ucb final : public Policy {
 public:
  explicit Ucb(const UcbOptions& options) : options_(options) {}

  Spec spec() const override { return {"ucb", {{"prune_ratio", options_.prune_ratio}}}; }
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    const double keep = 1.0 - input.prune_ratio.value_or(options_.prune_ratio);
    const std::uint64_t num_kept = detail::floor_share(keep, input.scores.num_samples());
    return {.kept = input.scores.unscored_then_highest(num_kept, input.draw())};
  }

 private:
  UcbOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_ucb(const UcbOptions& options) {
  detail::require(options.prune_ratio >= 0.0 && options.prune_ratio < 1.0, "ucb", "prune_ratio",
                  "in [0, 1)", options.prune_ratio);
  return std::make_unique<Ucb>(options);
}

}  // namespace tamis
