#include "tamis/policies/trim.h"

#include <algorithm>

#include "base/check.h"
#include "base/rounding.h"
#include "core/policies/part_subset.h"
#include "core/policies/score_masks.h"
#include "core/policies/top_k.h"

namespace tamis {

namespace {

class Trim final : public Policy {
 public:
  explicit Trim(const TrimOptions& options) : options_(options) {}

  Spec spec() const override {
    return {"trim",
            {{"prune_ratio", options_.prune_ratio},
             {"warmup_epochs", static_cast<double>(options_.warmup_epochs)}}};
  }
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    const std::size_t n = input.scores.size();
    Selection selection = Selection::all(n);
    if (input.epoch < options_.warmup_epochs) return selection;
    const double ratio = input.prune_ratio.value_or(options_.prune_ratio);
    const auto num_left_out =
        std::min<std::size_t>(detail::floor_share(ratio, n), detail::scored(input.scores).count());
    detail::RandomStream random(input.seed, input.epoch, detail::Purpose::selection);
    selection.kept -= detail::highest(input.scores, num_left_out, random);
    return selection;
  }

  Selection select_part(const PartInput& input) const override {
    Selection selection = anneal_part(input);
    if (input.local.epoch < options_.warmup_epochs) return selection;
    const std::uint64_t num_scored =
        detail::sum_over_ranks(detail::scored(input.local.scores).count(), input);
    const std::uint64_t num_left_out =
        std::min(detail::floor_share(options_.prune_ratio, input.num_samples), num_scored);
    selection.kept -= detail::highest_part(num_left_out, input, detail::Purpose::selection);
    return selection;
  }

 private:
  TrimOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_trim(const TrimOptions& options) {
  detail::require(options.prune_ratio >= 0.0 && options.prune_ratio < 1.0, "trim", "prune_ratio",
                  "in [0, 1)", options.prune_ratio);
  return std::make_unique<Trim>(options);
}

}  // namespace tamis
