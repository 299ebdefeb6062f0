#include "tamis/policies/trim.h"

#include <algorithm>

#include "base/check.h"
#include "base/rounding.h"

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
    const ScoreView& scores = input.scores;
    Selection selection = Selection::all(scores.size());
    if (input.epoch < options_.warmup_epochs) return selection;
    const double ratio = input.prune_ratio.value_or(options_.prune_ratio);
    const std::uint64_t num_left_out =
        std::min(detail::floor_share(ratio, scores.num_samples()), scores.count(scores.scored()));
    selection.kept -= scores.highest(num_left_out, input.draw());
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
