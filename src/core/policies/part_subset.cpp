// Every sample has a random key, a hash of its place in the whole data set; the subset is the
// samples with the smallest keys. Finding the border takes the number of keys below a few bounds,
// which ranks can add up.
#include "core/policies/part_subset.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/policies/score_masks.h"
#include "core/policies/top_k.h"
#include "tamis/communicator.h"

namespace tamis::detail {

namespace {

using Wide = unsigned __int128;
constexpr Wide kAllKeys = Wide{1} << 64U;
constexpr std::size_t kBins = 32;

// splitmix64 as a counter: different samples have different keys, because every step of the hash
// can be undone.
class SampleKeys {
 public:
  SampleKeys(const PartInput& input, Purpose purpose)
      : start_(RandomStream(input.local.seed, input.local.epoch, purpose).next()),
        first_(input.first) {}

  std::uint64_t operator()(std::size_t i) const {
    std::uint64_t z = start_ + (first_ + i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t start_;
  std::uint64_t first_;
};

template <typename Visit>
void for_each_bit(const Bitmap& bits, Visit visit) {
  for (std::size_t w = 0; w < bits.words().size(); ++w) {
    for (std::uint64_t word = bits.words()[w]; word != 0; word &= word - 1) {
      visit(w * 64 + static_cast<std::size_t>(std::countr_zero(word)));
    }
  }
}

// Finds the bound below which exactly `count` of the keys of all ranks lie.
class BoundSearch {
 public:
  BoundSearch(const Bitmap& candidates, const SampleKeys& keys, Communicator& communicator)
      : candidates_(candidates), keys_(keys), communicator_(communicator) {}

  Wide run(std::uint64_t num_candidates, std::uint64_t count) {
    // The keys are uniform, so the bound is where it is expected, give or take eight deviations.
    const auto total = static_cast<double>(num_candidates);
    const double share = static_cast<double>(count) / total;
    const double reach = 8.0 * std::sqrt(share * (1.0 - share) / total) + 16.0 / total;
    look_at(to_key(share - reach), to_key(share + reach));
    if (count < num_below_) {
      look_at(0, low_);
    } else if (count > num_below_ + num_inside_) {
      look_at(high_, kAllKeys);
    }
    while (count != num_below_ && count != num_below_ + num_inside_) narrow(count);
    return count == num_below_ ? low_ : high_;
  }

 private:
  static Wide to_key(double share) {
    if (share <= 0.0) return 0;
    return share >= 1.0 ? kAllKeys : static_cast<Wide>(share * 0x1p64);
  }

  void look_at(Wide low, Wide high) {
    low_ = low;
    high_ = high;
    inside_.clear();
    std::array<std::int64_t, 2> counts{};
    for_each_bit(candidates_, [&](std::size_t i) {
      const std::uint64_t key = keys_(i);
      if (key < low) {
        ++counts[0];
      } else if (key < high) {
        inside_.push_back(key);
      }
    });
    counts[1] = static_cast<std::int64_t>(inside_.size());
    communicator_.all_reduce(counts);
    num_below_ = static_cast<std::uint64_t>(counts[0]);
    num_inside_ = static_cast<std::uint64_t>(counts[1]);
  }

  // To the one of kBins equal bins that has the bound.
  void narrow(std::uint64_t count) {
    const Wide width = (high_ - low_ + kBins - 1) / kBins;
    std::array<std::int64_t, kBins> counts{};
    for (const std::uint64_t key : inside_)
      ++counts[static_cast<std::size_t>((key - low_) / width)];
    communicator_.all_reduce(counts);
    std::size_t bin = 0;
    while (num_below_ + static_cast<std::uint64_t>(counts[bin]) < count) {
      num_below_ += static_cast<std::uint64_t>(counts[bin++]);
    }
    num_inside_ = static_cast<std::uint64_t>(counts[bin]);
    low_ += bin * width;
    high_ = std::min(high_, low_ + width);
    std::erase_if(inside_, [&](std::uint64_t key) { return key < low_ || key >= high_; });
  }

  const Bitmap& candidates_;
  SampleKeys keys_;
  Communicator& communicator_;
  Wide low_ = 0;
  Wide high_ = kAllKeys;
  std::uint64_t num_below_ = 0;        // of all ranks
  std::uint64_t num_inside_ = 0;       // of all ranks
  std::vector<std::uint64_t> inside_;  // of this rank
};

}  // namespace

std::uint64_t sum_over_ranks(std::uint64_t number, const PartInput& input) {
  auto sum = static_cast<std::int64_t>(number);
  input.communicator->all_reduce(std::span(&sum, 1));
  return static_cast<std::uint64_t>(sum);
}

Bitmap choose_part(const Bitmap& candidates, std::uint64_t num_candidates, std::uint64_t count,
                   const PartInput& input, Purpose purpose) {
  if (count == num_candidates) return candidates;
  if (count == 0) return Bitmap(candidates.size());
  const SampleKeys keys(input, purpose);
  const Wide bound = BoundSearch(candidates, keys, *input.communicator).run(num_candidates, count);
  Bitmap chosen(candidates.size());
  for_each_bit(candidates, [&](std::size_t i) {
    if (keys(i) < bound) chosen.set(i);
  });
  return chosen;
}

Bitmap highest_part(std::uint64_t count, const PartInput& input, Purpose purpose) {
  const std::span<const float> scores = input.local.scores;
  if (count == 0) return Bitmap(scores.size());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const ScoreBorder border = find_border(scores, count, [&](std::span<std::int64_t> histogram) {
    input.communicator->all_reduce(histogram);
  });
  const Bitmap ties = within(scores, border.value, border.value);
  Bitmap result =
      choose_part(ties, sum_over_ranks(ties.count(), input), border.num_wanted, input, purpose);
  result |= within(scores, std::nextafter(border.value, kInfinity), kInfinity);
  return result;
}

Bitmap unscored_then_highest_part(std::uint64_t count, const PartInput& input, Purpose purpose) {
  Bitmap unscored(input.local.scores.size(), true);
  unscored -= scored(input.local.scores);
  const std::uint64_t num_unscored = sum_over_ranks(unscored.count(), input);
  if (num_unscored >= count) return choose_part(unscored, num_unscored, count, input, purpose);
  unscored |= highest_part(count - num_unscored, input, purpose);
  return unscored;
}

}  // namespace tamis::detail
