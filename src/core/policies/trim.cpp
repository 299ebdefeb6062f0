#include <algorithm>

#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class Trim final : public BuiltInPolicy {
 public:
  using BuiltInPolicy::BuiltInPolicy;
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    const ScoreView& scores = input.scores;
    Selection selection = Selection::all(scores.size());
    if (static_cast<double>(input.epoch) < option("warmup_epochs")) return selection;
    const std::uint64_t num_left_out = std::min(
        floor_share(prune_ratio(input), scores.num_samples()), scores.count(scores.scored()));
    selection.kept -= scores.highest(num_left_out, input.draw());
    return selection;
  }
};

}  // namespace

std::unique_ptr<Policy> make_trim(const OptionMap& options) {
  return std::make_unique<Trim>("trim", options);
}

}  // namespace tamis::detail
