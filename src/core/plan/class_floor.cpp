#include "core/plan/class_floor.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace tamis::detail {

namespace {

// Knuth's algorithm S: whether the next sample of the class is one of the chosen.
bool takes_next(ClassDraw& draw, RandomStream& random) {
  if (draw.num_wanted == 0 || random.below(draw.num_left--) >= draw.num_wanted) return false;
  --draw.num_wanted;
  return true;
}

// Members of every class on all ranks.
std::vector<std::int64_t> count_by_class(const ScoreView& scores,
                                         std::span<const std::int32_t> labels,
                                         const Bitmap& members, std::size_t num_classes) {
  std::vector<std::int64_t> counts(num_classes, 0);
  if (!members.empty()) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      counts[static_cast<std::size_t>(labels[i])] += static_cast<std::int64_t>(members.test(i));
    }
  }
  scores.sum(counts);
  return counts;
}

// How many of `num_kept` samples that stand for `num_all` need the weight, the others having 1.
std::uint64_t num_rescaled_of(std::uint64_t num_kept, std::uint64_t num_all, float rescale) {
  const auto missing = static_cast<double>(num_all - num_kept);
  const double extra = static_cast<double>(rescale) - 1.0;
  return static_cast<std::uint64_t>(
      std::clamp(std::nearbyint(missing / extra), 0.0, static_cast<double>(num_kept)));
}

}  // namespace

std::vector<std::size_t> number_classes(std::span<std::int32_t> labels) {
  std::vector<std::int32_t> names(labels.begin(), labels.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<std::size_t> sizes(names.size(), 0);
  for (std::int32_t& label : labels) {
    const auto name = std::lower_bound(names.begin(), names.end(), label);
    label = static_cast<std::int32_t>(name - names.begin());
    ++sizes[static_cast<std::size_t>(label)];
  }
  return sizes;
}

ClassDraws draw_classes(const ScoreView& scores, std::span<const std::int32_t> labels,
                        std::span<const std::size_t> class_sizes, double share,
                        const Selection& selection) {
  const std::size_t num_classes = class_sizes.size();
  ClassDraws draws{.labels = labels, .restored = std::vector<ClassDraw>(num_classes)};
  const auto num_kept = count_by_class(scores, labels, selection.kept, num_classes);
  for (std::size_t c = 0; c < num_classes; ++c) {
    const std::uint64_t least = class_sizes[c] - floor_share(1.0 - share, class_sizes[c]);
    const auto kept = static_cast<std::uint64_t>(num_kept[c]);
    draws.restored[c] = {.num_left = class_sizes[c] - kept,
                         .num_wanted = least - std::min(least, kept)};
    draws.num_restored += draws.restored[c].num_wanted;
  }
  if (draws.num_restored == 0 || selection.rescale == 1.0F) return draws;

  // The samples that a weight stands for: the rescaled ones and those they replace.
  const auto num_rescaled = count_by_class(scores, labels, selection.rescaled, num_classes);
  if (std::all_of(num_rescaled.begin(), num_rescaled.end(), [](auto n) { return n == 0; })) {
    return draws;
  }
  draws.rescaled.resize(num_classes);
  for (std::size_t c = 0; c < num_classes; ++c) {
    if (draws.restored[c].num_wanted == 0) continue;
    const auto rescaled = static_cast<std::uint64_t>(num_rescaled[c]);
    const std::uint64_t num_members = rescaled + draws.restored[c].num_wanted;
    const std::uint64_t num_all = rescaled + draws.restored[c].num_left;
    draws.rescaled[c] = {.num_left = num_members,
                         .num_wanted = num_rescaled_of(num_members, num_all, selection.rescale)};
  }
  return draws;
}

void restore_one_by_one(ClassDraws draws, RandomStream& random, Selection& selection) {
  const bool is_weighted = !draws.rescaled.empty();
  for (std::size_t i = 0; i < draws.labels.size(); ++i) {
    const auto c = static_cast<std::size_t>(draws.labels[i]);
    bool is_member = is_weighted && selection.rescaled.test(i);
    if (!selection.kept.test(i) && takes_next(draws.restored[c], random)) {
      selection.kept.set(i);
      is_member = is_weighted;
    }
    if (!is_member || draws.rescaled[c].num_left == 0) continue;
    if (takes_next(draws.rescaled[c], random)) {
      selection.rescaled.set(i);
    } else {
      selection.rescaled.clear(i);
    }
  }
}

}  // namespace tamis::detail
