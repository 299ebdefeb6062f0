#include "core/plan/weight_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random/subset.h"

namespace tamis::detail {

bool has_two_weights(const Selection& selection) {
  return selection.rescale != 1.0F && !selection.rescaled.empty() && selection.rescaled.count() > 0;
}

std::size_t fill_batches(Selection& selection, std::size_t batch_size, RandomStream& random) {
  if (!has_two_weights(selection)) return 0;
  const std::size_t num_rescaled = selection.rescaled.count();
  const std::size_t missing = (batch_size - num_rescaled % batch_size) % batch_size;
  if (missing == 0) return 0;
  Bitmap pruned(selection.kept.size(), true);
  pruned -= selection.kept;
  const std::size_t num_pruned = pruned.count();
  if (missing >= num_pruned) {
    selection.kept |= pruned;
    selection.rescaled = {};
    selection.rescale = 1.0F;
    return num_pruned;
  }
  const Bitmap restored = choose(pruned, num_pruned, missing, random);
  selection.kept |= restored;
  selection.rescaled |= restored;
  selection.rescale = static_cast<float>(static_cast<double>(selection.rescale) *
                                         static_cast<double>(num_rescaled) /
                                         static_cast<double>(num_rescaled + missing));
  return missing;
}

Array<std::uint32_t> group_by_weight(const Array<std::uint32_t>& order, const Bitmap& rescaled,
                                     std::size_t batch_size, RandomStream& random) {
  const auto is_rescaled = [&](std::uint32_t index) { return rescaled.test(index); };
  const std::size_t num_plain = order.size() - static_cast<std::size_t>(std::count_if(
                                                   order.begin(), order.end(), is_rescaled));
  Array<std::uint32_t> parted(order.size());
  std::uint32_t* const middle = parted.begin() + num_plain;
  std::partition_copy(order.begin(), order.end(), middle, parted.begin(), is_rescaled);
  const std::size_t num_plain_batches = num_plain / batch_size;
  const std::size_t num_batches = num_plain_batches + (order.size() - num_plain) / batch_size;

  std::vector<std::size_t> batches(num_batches);
  std::iota(batches.begin(), batches.end(), std::size_t{0});
  for (std::size_t k = num_batches; k > 1; --k) std::swap(batches[k - 1], batches[random.below(k)]);
  // Whoever joins a last single sample to the batch before it, for batch norm, must find it equal.
  if (num_plain % batch_size == 1 && num_plain_batches > 0) {
    const auto is_plain = [&](std::size_t batch) { return batch < num_plain_batches; };
    std::iter_swap(std::find_if(batches.rbegin(), batches.rend(), is_plain), batches.rbegin());
  }

  Array<std::uint32_t> result(order.size());
  std::uint32_t* out = result.begin();
  const std::uint32_t* const first_rescaled = middle - num_plain_batches * batch_size;
  for (const std::size_t batch : batches) {
    const std::uint32_t* const from = batch < num_plain_batches ? parted.begin() : first_rescaled;
    out = std::copy_n(from + batch * batch_size, batch_size, out);
  }
  out = std::copy(parted.begin() + num_plain_batches * batch_size, middle, out);
  const auto num_left = static_cast<std::size_t>(result.end() - out);
  std::copy_n(parted.end() - num_left, num_left, out);
  return result;
}

}  // namespace tamis::detail
