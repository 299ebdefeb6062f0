// Qin et al., InfoBatch: Lossless Training Speed Up by Unbiased Dynamic Data Pruning. Differences
// from the authors' code: unscored samples are never pruned, equal scores prune nothing, and a
// prune_ratio above 0.9 is refused instead of silently lowered.
#include "winnow/policies/infobatch.h"

#include "detail/check.h"
#include "detail/rounding.h"
#include "detail/score_masks.h"
#include "detail/score_statistics.h"
#include "detail/subset.h"

namespace winnow {

namespace {

constexpr double kMaxPruneRatio = 0.9;

class InfoBatch final : public Policy {
 public:
  explicit InfoBatch(const InfoBatchOptions& options) : options_(options) {}

  Spec spec() const override { return {"infobatch", {{"prune_ratio", options_.prune_ratio}}}; }
  double default_delta() const override { return 0.875; }
  double max_prune_ratio() const override { return kMaxPruneRatio; }

  Selection select(const PolicyInput& input) const override {
    const std::size_t n = input.scores.size();
    const auto statistics = detail::score_statistics(input.scores);
    Selection selection = Selection::all(n);
    if (statistics.num_scored == 0) return selection;

    const double keep = 1.0 - input.prune_ratio.value_or(options_.prune_ratio);
    const Bitmap easy = detail::below(input.scores, statistics.mean);
    const std::size_t num_easy = easy.count();
    const auto num_kept = static_cast<std::size_t>(detail::floor_share(keep, num_easy));
    detail::RandomStream random(input.seed, input.epoch, detail::Purpose::selection);
    selection.rescaled = detail::choose(easy, num_easy, num_kept, random);
    selection.rescale = static_cast<float>(1.0 / keep);
    selection.kept -= easy;
    selection.kept |= selection.rescaled;
    selection.report.threshold = statistics.mean;
    selection.report.num_below = num_easy;
    selection.report.num_kept_of_below = num_kept;
    return selection;
  }

 private:
  InfoBatchOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_infobatch(const InfoBatchOptions& options) {
  detail::require(options.prune_ratio >= 0.0 && options.prune_ratio <= kMaxPruneRatio, "infobatch",
                  "prune_ratio", "in [0, 0.9]", options.prune_ratio);
  return std::make_unique<InfoBatch>(options);
}

}  // namespace winnow
