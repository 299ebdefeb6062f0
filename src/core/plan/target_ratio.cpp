#include "core/plan/target_ratio.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tamis::detail {

namespace {

constexpr int kMaxTries = 8;

struct Try {
  double ratio = 0.0;
  double num_pruned = 0.0;
};

}  // namespace

RatioChoice choose_ratio(const ScoreView& scores, double wanted, double max_ratio,
                         const std::function<Selection(double)>& select) {
  // Nearer than this no later epoch would notice.
  const double tolerance = std::max(1.0, 1e-4 * static_cast<double>(scores.num_samples()));
  RatioChoice best;
  double best_distance = 0.0;
  const auto attempt = [&](double ratio) {
    Selection selection = select(ratio);
    const std::uint64_t num_pruned = scores.num_samples() - scores.count(selection.kept);
    const double distance = std::abs(static_cast<double>(num_pruned) - wanted);
    if (best.selection.kept.empty() || distance < best_distance) {
      best.selection = std::move(selection);
      best.prune_ratio = ratio;
      best_distance = distance;
    }
    return Try{ratio, static_cast<double>(num_pruned)};
  };

  Try low = attempt(0.0);
  Try high = attempt(max_ratio);
  best.least_pruned = static_cast<std::uint64_t>(low.num_pruned);
  best.most_pruned = static_cast<std::uint64_t>(high.num_pruned);
  for (int tries = 0; tries < kMaxTries && best_distance > tolerance; ++tries) {
    if (wanted <= low.num_pruned || wanted >= high.num_pruned) break;
    // Every other time by halves, so that a curve that is not straight is still narrowed down.
    const double share =
        tries % 2 == 0 ? (wanted - low.num_pruned) / (high.num_pruned - low.num_pruned) : 0.5;
    const Try next = attempt(low.ratio + share * (high.ratio - low.ratio));
    (next.num_pruned < wanted ? low : high) = next;
  }
  return best;
}

}  // namespace tamis::detail
