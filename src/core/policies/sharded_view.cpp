#include "core/policies/sharded_view.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/threads.h"
#include "core/grouping/kmeans_1d.h"
#include "core/policies/draw_purpose.h"
#include "core/policies/exact_sum.h"
#include "core/policies/part_subset.h"

namespace tamis::detail {

ScoreMean ShardedView::mean() const {
  const Parts parts(scores().size(), 1, kSamplesPerThread);
  std::vector<ExactSum> sums(parts.size());
  parts.run([&](std::size_t part) {
    const std::size_t begin = parts.begin(part);
    sums[part].add(scores().subspan(begin, parts.end(part) - begin));
  });
  ExactSum total;
  for (const ExactSum& own : sums) total.add(own);
  std::array<std::int64_t, ExactSum::kDigits + 1> numbers{};
  std::copy(total.digits().begin(), total.digits().end(), numbers.begin());
  numbers.back() = static_cast<std::int64_t>(scored().count());
  sum(numbers);

  std::copy(numbers.begin(), numbers.end() - 1, total.digits().begin());
  const auto num_scored = static_cast<std::uint64_t>(numbers.back());
  if (num_scored == 0) return {};
  total.carry();
  return {.num_scored = num_scored, .value = total.divided_by(num_scored)};
}

Bitmap ShardedView::choose(const Bitmap& candidates, std::uint64_t count, const Draw& draw) const {
  const ClassDraw all{.num_left = this->count(candidates), .num_wanted = count};
  const SampleKeys keys(draw.seed, draw.epoch, purpose_of(draw), first());
  return choose_part(candidates, {}, std::span(&all, 1), keys, communicator_);
}

ScoreGroups ShardedView::groups(const Bitmap& members, std::size_t num_groups) const {
  return kmeans_1d(scores(), members, num_groups, communicator_);
}

void ShardedView::restore(const ClassDraws& draws, std::uint64_t seed, std::uint64_t epoch,
                          Selection& selection) const {
  Bitmap pruned(size(), true);
  pruned -= selection.kept;
  const Bitmap restored =
      choose_part(pruned, draws.labels, draws.restored,
                  SampleKeys(seed, epoch, Purpose::class_floor, first()), communicator_);
  selection.kept |= restored;
  if (draws.rescaled.empty()) return;

  // The members of the classes whose weights are dealt out again.
  Bitmap members = selection.rescaled;
  members |= restored;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto c = static_cast<std::size_t>(draws.labels[i]);
    if (draws.rescaled[c].num_left == 0) members.clear(i);
  }
  selection.rescaled -= members;
  selection.rescaled |=
      choose_part(members, draws.labels, draws.rescaled,
                  SampleKeys(seed, epoch, Purpose::class_weights, first()), communicator_);
}

}  // namespace tamis::detail
