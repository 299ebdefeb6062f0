#include "core/policies/local_view.h"

#include "base/random/subset.h"
#include "core/grouping/kmeans_1d.h"
#include "core/policies/draw_purpose.h"
#include "core/policies/score_statistics.h"

namespace tamis::detail {

ScoreMean LocalView::mean() const {
  const ScoreStatistics statistics = score_statistics(scores());
  return {.num_scored = statistics.num_scored, .value = statistics.mean};
}

Bitmap LocalView::choose(const Bitmap& candidates, std::uint64_t count, const Draw& draw) const {
  RandomStream random(draw.seed, draw.epoch, purpose_of(draw));
  return detail::choose(candidates, candidates.count(), static_cast<std::size_t>(count), random);
}

ScoreGroups LocalView::groups(const Bitmap& members, std::size_t num_groups) const {
  return kmeans_1d(scores(), members, num_groups);
}

void LocalView::restore(const ClassDraws& draws, std::uint64_t seed, std::uint64_t epoch,
                        Selection& selection) const {
  RandomStream random(seed, epoch, Purpose::class_floor);
  restore_one_by_one(draws, random, selection);
}

}  // namespace tamis::detail
