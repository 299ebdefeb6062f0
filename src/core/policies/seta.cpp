// Zhou et al., Scale Efficient Training (SeTa). Difference from the authors' code: the groups are
// the optimal one-dimensional k-means (intervals), not scikit-learn's local optimum.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/policies/policies.h"

namespace tamis::detail {

namespace {

class Seta final : public BuiltInPolicy {
 public:
  explicit Seta(const OptionMap& options) : BuiltInPolicy("seta", options) {
    require(window_size(num_groups()) >= 1, "seta", "groups * window_scale, rounded half to even,",
            "at least 1 (the window is empty)", option("groups") * option("window_scale"));
  }

  double default_delta() const override { return 0.875; }
  bool prunes_when_annealing() const override { return true; }
  double max_prune_ratio() const override { return kMaxAdjustedRatio; }

  Selection select(const PolicyInput& input) const override {
    Selection selection = anneal(input);
    Bitmap members = input.scores.scored();
    members &= selection.kept;
    const ScoreGroups clusters = input.scores.groups(members, num_groups());
    apply_window(clusters, input, std::move(members), selection);
    return selection;
  }

  Selection anneal(const PolicyInput& input) const override {
    return {.kept = input.scores.choose(num_kept(input), input.draw())};
  }

 private:
  std::size_t num_groups() const { return static_cast<std::size_t>(option("groups")); }
  // The default rounding mode of nearbyint is half to even.
  std::size_t window_size(std::size_t count) const {
    return static_cast<std::size_t>(
        std::nearbyint(static_cast<double>(count) * option("window_scale")));
  }

  // Leaves out the members whose groups the window does not have.
  void apply_window(const ScoreGroups& clusters, const PolicyInput& input, Bitmap members,
                    Selection& selection) const {
    const std::size_t count = clusters.groups.size();
    if (count == 0) return;

    // With fewer groups than wanted, the window shrinks with them but never vanishes.
    const std::size_t window = std::max<std::size_t>(1, window_size(count));
    const bool first = input.epoch == 0;
    const std::size_t begin = first ? 0 : input.epoch % (count - window + 1);
    const std::size_t end = first ? count : begin + window;
    if (end - begin < count) {
      Bitmap outside = std::move(members);
      outside -= input.scores.within(clusters.groups[begin].low, clusters.groups[end - 1].high);
      selection.kept -= outside;
    }
    selection.report.groups = clusters.groups;
    selection.report.window_begin = begin;
    selection.report.window_end = end;
    selection.report.within_group_sum_of_squares = clusters.within_group_sum_of_squares;
  }
};

}  // namespace

std::unique_ptr<Policy> make_seta(const OptionMap& options) {
  return std::make_unique<Seta>(options);
}

}  // namespace tamis::detail
