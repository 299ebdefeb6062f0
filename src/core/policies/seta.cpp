// Zhou et al., Scale Efficient Training (SeTa). Difference from the authors' code: the groups are
// the optimal one-dimensional k-means (intervals), not scikit-learn's local optimum.
#include "tamis/policies/seta.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"

namespace tamis {

namespace {

// The default rounding mode of nearbyint is half to even.
std::size_t window_size(std::size_t num_groups, double window_scale) {
  return static_cast<std::size_t>(std::nearbyint(static_cast<double>(num_groups) * window_scale));
}

class Seta final : public Policy {
 public:
  explicit Seta(const SetaOptions& options) : options_(options) {}

  Spec spec() const override {
    return {"seta",
            {{"prune_ratio", options_.prune_ratio},
             {"groups", static_cast<double>(options_.groups)},
             {"window_scale", options_.window_scale}}};
  }
  double default_delta() const override { return 0.875; }
  bool prunes_when_annealing() const override { return true; }
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    Selection selection = anneal(input);
    Bitmap members = input.scores.scored();
    members &= selection.kept;
    const ScoreGroups clusters = input.scores.groups(members, options_.groups);
    apply_window(clusters, input, std::move(members), selection);
    return selection;
  }

  Selection anneal(const PolicyInput& input) const override {
    const double keep = 1.0 - input.prune_ratio.value_or(options_.prune_ratio);
    const std::uint64_t num_kept = detail::floor_share(keep, input.scores.num_samples());
    return {.kept = input.scores.choose(num_kept, input.draw())};
  }

 private:
  // Leaves out the members whose groups the window does not have.
  void apply_window(const ScoreGroups& clusters, const PolicyInput& input, Bitmap members,
                    Selection& selection) const {
    const std::size_t num_groups = clusters.groups.size();
    if (num_groups == 0) return;

    // With fewer groups than wanted, the window shrinks with them but never vanishes.
    const std::size_t window =
        std::max<std::size_t>(1, window_size(num_groups, options_.window_scale));
    const bool first = input.epoch == 0;
    const std::size_t begin = first ? 0 : input.epoch % (num_groups - window + 1);
    const std::size_t end = first ? num_groups : begin + window;
    if (end - begin < num_groups) {
      Bitmap outside = std::move(members);
      outside -= input.scores.within(clusters.groups[begin].low, clusters.groups[end - 1].high);
      selection.kept -= outside;
    }
    selection.report.groups = clusters.groups;
    selection.report.window_begin = begin;
    selection.report.window_end = end;
    selection.report.within_group_sum_of_squares = clusters.within_group_sum_of_squares;
  }

  SetaOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_seta(const SetaOptions& options) {
  detail::require(options.prune_ratio >= 0.0 && options.prune_ratio < 1.0, "seta", "prune_ratio",
                  "in [0, 1)", options.prune_ratio);
  detail::require(options.groups >= 1 && options.groups <= 1000, "seta", "groups", "in [1, 1000]",
                  options.groups);
  detail::require(options.window_scale > 0.0 && options.window_scale <= 1.0, "seta", "window_scale",
                  "in (0, 1]", options.window_scale);
  detail::require(window_size(options.groups, options.window_scale) >= 1, "seta",
                  "groups * window_scale, rounded half to even,",
                  "at least 1 (the window is empty)",
                  static_cast<double>(options.groups) * options.window_scale);
  return std::make_unique<Seta>(options);
}

}  // namespace tamis
