#include "core/plan/weight_groups.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random/subset.h"

namespace tamis::detail {

bool has_two_weights(const Selection& selection) {
  return selection.rescale != 1.0F && !selection.rescaled.empty() && selection.rescaled.count() > 0;
}

std::uint64_t fill_batches(const ScoreView& scores, std::size_t batch_size, RandomStream& random,
                           Selection& selection) {
  if (selection.rescale == 1.0F) return 0;
  const std::size_t num_rescaled = selection.rescaled.count();
  std::size_t missing = (batch_size - num_rescaled % batch_size) % batch_size;
  std::size_t num_restored = missing;
  if (missing > 0) {
    Bitmap restored(selection.kept.size(), true);
    restored -= selection.kept;
    const std::size_t num_pruned = restored.count();
    if (missing >= num_pruned) {
      num_restored = num_pruned;
      missing = 0;
      selection.rescaled = {};
    } else {
      restored = choose(restored, num_pruned, missing, random);
      selection.rescaled |= restored;
    }
    selection.kept |= restored;
  }
  const std::size_t num_weighted = selection.rescaled.count();
  const auto signed_of = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  std::array<std::int64_t, 4> totals = {signed_of(num_rescaled), signed_of(num_weighted),
                                        signed_of(missing), signed_of(num_restored)};
  scores.sum(totals);
  const auto [all_rescaled, all_weighted, all_missing, all_restored] = totals;
  if (all_rescaled > 0 && all_weighted == 0) {
    selection.rescaled = {};
    selection.rescale = 1.0F;
  } else if (all_missing > 0) {
    selection.rescale = static_cast<float>(static_cast<double>(selection.rescale) *
                                           static_cast<double>(all_weighted - all_missing) /
                                           static_cast<double>(all_weighted));
  }
  return static_cast<std::uint64_t>(all_restored);
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
