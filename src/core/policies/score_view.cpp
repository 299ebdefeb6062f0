#include "tamis/score_view.h"

#include <cmath>
#include <limits>

#include "core/policies/local_view.h"
#include "core/policies/score_masks.h"
#include "core/policies/top_k.h"

namespace tamis {

Bitmap ScoreView::scored() const { return detail::scored(scores_); }

Bitmap ScoreView::below(double threshold) const { return detail::below(scores_, threshold); }

Bitmap ScoreView::within(float low, float high) const { return detail::within(scores_, low, high); }

std::uint64_t ScoreView::count(const Bitmap& members) const {
  auto number = static_cast<std::int64_t>(members.count());
  sum(std::span(&number, 1));
  return static_cast<std::uint64_t>(number);
}

Bitmap ScoreView::choose(std::uint64_t count, const Draw& draw) const {
  return choose(Bitmap(size(), true), count, draw);
}

Bitmap ScoreView::highest(std::uint64_t count, const Draw& draw) const {
  if (count == 0) return Bitmap(size());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const detail::ScoreBorder border = detail::find_border(
      scores_, count, [this](std::span<std::int64_t> histogram) { sum(histogram); });
  Bitmap result = choose(within(border.value, border.value), border.num_wanted, draw);
  // Nothing is above an infinite score, and nextafter() would return it again.
  if (border.value < kInfinity) {
    result |= within(std::nextafter(border.value, kInfinity), kInfinity);
  }
  return result;
}

Bitmap ScoreView::unscored_then_highest(std::uint64_t count, const Draw& draw) const {
  Bitmap unscored(size(), true);
  unscored -= scored();
  const std::uint64_t num_unscored = this->count(unscored);
  if (num_unscored >= count) return choose(unscored, count, draw);
  unscored |= highest(count - num_unscored, draw);
  return unscored;
}

std::unique_ptr<ScoreView> make_score_view(std::span<const float> scores) {
  return std::make_unique<detail::LocalView>(scores);
}

}  // namespace tamis
