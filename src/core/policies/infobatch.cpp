// Qin et al., InfoBatch: Lossless Training Speed Up by Unbiased Dynamic Data Pruning. Differences
// from the authors' code: unscored samples are never pruned, equal scores prune nothing, and a
// prune_ratio above 0.9 is refused instead of silently lowered.
#include "tamis/policies/infobatch.h"

#include "base/check.h"
#include "base/random/subset.h"
#include "base/rounding.h"
#include "core/policies/part_statistics.h"
#include "core/policies/part_subset.h"
#include "core/policies/score_masks.h"
#include "core/policies/score_statistics.h"

namespace tamis {

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
    if (statistics.num_scored == 0) return Selection::all(n);

    const double keep = 1.0 - input.prune_ratio.value_or(options_.prune_ratio);
    const Bitmap easy = detail::below(input.scores, statistics.mean);
    const std::size_t num_easy = easy.count();
    const auto num_kept = static_cast<std::size_t>(detail::floor_share(keep, num_easy));
    detail::RandomStream random(input.seed, input.epoch, detail::Purpose::selection);
    Selection selection =
        without_easy(easy, detail::choose(easy, num_easy, num_kept, random), keep);
    selection.report.threshold = statistics.mean;
    selection.report.num_below = num_easy;
    selection.report.num_kept_of_below = num_kept;
    return selection;
  }

  Selection select_part(const PartInput& input) const override {
    const auto statistics = detail::part_statistics(input);
    if (statistics.num_scored == 0) return anneal_part(input);

    const double keep = 1.0 - options_.prune_ratio;
    const Bitmap easy = detail::below(input.local.scores, statistics.mean);
    const std::uint64_t num_easy = detail::sum_over_ranks(easy.count(), input);
    const std::uint64_t num_kept = detail::floor_share(keep, num_easy);
    Selection selection = without_easy(
        easy, detail::choose_part(easy, num_easy, num_kept, input, detail::Purpose::selection),
        keep);
    selection.report.threshold = statistics.mean;
    selection.report.num_below = num_easy;
    selection.report.num_kept_of_below = num_kept;
    return selection;
  }

 private:
  // All samples but the easy ones, and of these the chosen ones with a weight of 1 / keep.
  static Selection without_easy(const Bitmap& easy, Bitmap chosen, double keep) {
    Selection selection = Selection::all(easy.size());
    selection.kept -= easy;
    selection.kept |= chosen;
    selection.rescaled = std::move(chosen);
    selection.rescale = static_cast<float>(1.0 / keep);
    return selection;
  }

  InfoBatchOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_infobatch(const InfoBatchOptions& options) {
  detail::require(options.prune_ratio >= 0.0 && options.prune_ratio <= kMaxPruneRatio, "infobatch",
                  "prune_ratio", "in [0, 0.9]", options.prune_ratio);
  return std::make_unique<InfoBatch>(options);
}

}  // namespace tamis
