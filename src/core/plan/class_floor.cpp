#include "core/plan/class_floor.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "core/plan/weight_groups.h"

namespace tamis::detail {

namespace {

// Of the next `num_left` samples of a class, `num_wanted` are taken (Knuth's algorithm S).
struct Draw {
  std::size_t num_left = 0;
  std::size_t num_wanted = 0;

  bool next(RandomStream& random) {
    if (num_wanted == 0 || random.below(num_left--) >= num_wanted) return false;
    --num_wanted;
    return true;
  }
};

std::vector<std::size_t> count_by_class(std::span<const std::int32_t> labels, const Bitmap& members,
                                        std::size_t num_classes) {
  std::vector<std::size_t> counts(num_classes, 0);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    counts[static_cast<std::size_t>(labels[i])] += static_cast<std::size_t>(members.test(i));
  }
  return counts;
}

// How many of `num_kept` samples that stand for `num_all` need the weight, the others having 1.
std::size_t num_rescaled_of(std::size_t num_kept, std::size_t num_all, float rescale) {
  const auto missing = static_cast<double>(num_all - num_kept);
  const double extra = static_cast<double>(rescale) - 1.0;
  return static_cast<std::size_t>(
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

std::size_t apply_class_floor(std::span<const std::int32_t> labels,
                              std::span<const std::size_t> class_sizes, double share,
                              Selection& selection, RandomStream& random) {
  const std::size_t num_classes = class_sizes.size();
  const auto num_kept = count_by_class(labels, selection.kept, num_classes);
  std::vector<Draw> restored(num_classes);
  std::size_t num_restored = 0;
  for (std::size_t c = 0; c < num_classes; ++c) {
    const std::size_t least = class_sizes[c] - floor_share(1.0 - share, class_sizes[c]);
    restored[c] = {.num_left = class_sizes[c] - num_kept[c],
                   .num_wanted = least - std::min(least, num_kept[c])};
    num_restored += restored[c].num_wanted;
  }
  if (num_restored == 0) return 0;

  // The samples that a weight stands for: the rescaled ones and those they replace.
  const bool is_weighted = has_two_weights(selection);
  std::vector<Draw> rescaled(num_classes);
  if (is_weighted) {
    const auto num_rescaled = count_by_class(labels, selection.rescaled, num_classes);
    for (std::size_t c = 0; c < num_classes; ++c) {
      if (restored[c].num_wanted == 0) continue;
      const std::size_t num_members = num_rescaled[c] + restored[c].num_wanted;
      const std::size_t num_all = num_rescaled[c] + restored[c].num_left;
      rescaled[c] = {.num_left = num_members,
                     .num_wanted = num_rescaled_of(num_members, num_all, selection.rescale)};
    }
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto c = static_cast<std::size_t>(labels[i]);
    bool is_member = is_weighted && selection.rescaled.test(i);
    if (!selection.kept.test(i) && restored[c].next(random)) {
      selection.kept.set(i);
      is_member = is_weighted;
    }
    if (!is_member || rescaled[c].num_left == 0) continue;
    if (rescaled[c].next(random)) {
      selection.rescaled.set(i);
    } else {
      selection.rescaled.clear(i);
    }
  }
  return num_restored;
}

}  // namespace tamis::detail
