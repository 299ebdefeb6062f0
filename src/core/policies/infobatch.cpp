// Qin et al., InfoBatch: Lossless Training Speed Up by Unbiased Dynamic Data Pruning. Differences
// from the authors' code: unscored samples are never pruned, equal scores prune nothing, and a
// prune_ratio above 0.9 is refused instead of silently lowered.
#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class InfoBatch final : public BuiltInPolicy {
 public:
  using BuiltInPolicy::BuiltInPolicy;
  double default_delta() const override { return 0.875; }
  double max_prune_ratio() const override { return 0.9; }

  Selection select(const PolicyInput& input) const override {
    const ScoreMean mean = input.scores.mean();
    Selection selection = Selection::all(input.scores.size());
    if (mean.num_scored == 0) return selection;

    const double keep = 1.0 - prune_ratio(input);
    const Bitmap easy = input.scores.below(mean.value);
    const std::uint64_t num_easy = input.scores.count(easy);
    const std::uint64_t num_kept = floor_share(keep, num_easy);
    selection.rescaled = input.scores.choose(easy, num_kept, input.draw());
    selection.rescale = static_cast<float>(1.0 / keep);
    selection.kept -= easy;
    selection.kept |= selection.rescaled;
    selection.report.threshold = mean.value;
    selection.report.num_below = num_easy;
    selection.report.num_kept_of_below = num_kept;
    return selection;
  }
};

}  // namespace

std::unique_ptr<Policy> make_infobatch(const OptionMap& options) {
  return std::make_unique<InfoBatch>("infobatch", options);
}

}  // namespace tamis::detail
