// Zhou et al., Scale Efficient Training (SeTa). Difference from the authors' code: the groups are
// the optimal one-dimensional k-means (intervals), not scikit-learn's local optimum.
#include "tamis/policies/seta.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random/subset.h"
#include "base/rounding.h"
#include "core/grouping/kmeans_1d.h"
#include "core/policies/part_subset.h"
#include "core/policies/score_masks.h"

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
    Bitmap members = detail::scored(input.scores);
    members &= selection.kept;
    const auto clusters = detail::kmeans_1d(input.scores, members, options_.groups);
    apply_window(clusters, input, std::move(members), selection);
    return selection;
  }

  Selection anneal(const PolicyInput& input) const override {
    const std::size_t n = input.scores.size();
    detail::RandomStream random(input.seed, input.epoch, detail::Purpose::selection);
    const double keep = 1.0 - input.prune_ratio.value_or(options_.prune_ratio);
    return {.kept = detail::choose(n, detail::floor_share(keep, n), random)};
  }

  Selection select_part(const PartInput& input) const override {
    Selection selection = anneal_part(input);
    Bitmap members = detail::scored(input.local.scores);
    members &= selection.kept;
    const auto clusters =
        detail::kmeans_1d(input.local.scores, members, options_.groups, *input.communicator);
    apply_window(clusters, input.local, std::move(members), selection);
    return selection;
  }

  Selection anneal_part(const PartInput& input) const override {
    const std::uint64_t num_kept =
        detail::floor_share(1.0 - options_.prune_ratio, input.num_samples);
    return {.kept = detail::choose_part(Bitmap(input.local.scores.size(), true), input.num_samples,
                                        num_kept, input, detail::Purpose::selection)};
  }

 private:
  // Leaves out the members whose groups the window does not have.
  void apply_window(const detail::Kmeans1d& clusters, const PolicyInput& input, Bitmap members,
                    Selection& selection) const {
    const std::size_t num_groups = clusters.groups.size();
    if (num_groups == 0) return;

    // With fewer groups than asked for, the window shrinks with them but never vanishes.
    const std::size_t window =
        std::max<std::size_t>(1, window_size(num_groups, options_.window_scale));
    const bool first = input.epoch == 0;
    const std::size_t begin = first ? 0 : input.epoch % (num_groups - window + 1);
    const std::size_t end = first ? num_groups : begin + window;
    if (end - begin < num_groups) {
      Bitmap outside = std::move(members);
      outside -=
          detail::within(input.scores, clusters.groups[begin].low, clusters.groups[end - 1].high);
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
