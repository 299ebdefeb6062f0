// Finding the border between the smallest keys and the others takes the number of keys below a few
// bounds, which ranks can add up. The classes are searched side by side.
#include "core/policies/part_subset.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace tamis::detail {

namespace {

using Wide = unsigned __int128;
constexpr Wide kAllKeys = Wide{1} << 64U;
constexpr std::size_t kBins = 32;

template <typename Visit>
void for_each_bit(const Bitmap& bits, Visit visit) {
  for (std::size_t w = 0; w < bits.words().size(); ++w) {
    for (std::uint64_t word = bits.words()[w]; word != 0; word &= word - 1) {
      visit(w * 64 + static_cast<std::size_t>(std::countr_zero(word)));
    }
  }
}

Wide to_key(double share) {
  if (share <= 0.0) return 0;
  return share >= 1.0 ? kAllKeys : static_cast<Wide>(share * 0x1p64);
}

// Where the bound of a class is sought: in [low, high].
struct Range {
  Wide low = 0;
  Wide high = 0;
  std::uint64_t num_wanted = 0;  // keys below the bound, of all ranks
  std::uint64_t num_below = 0;   // keys below `low`, of all ranks
  std::uint64_t num_inside = 0;  // keys in [low, high), of all ranks

  bool is_found() const { return num_wanted == num_below || num_wanted == num_below + num_inside; }
  Wide bound() const { return num_wanted == num_below ? low : high; }
};

Range expected_range(const ClassDraw& draw) {
  if (draw.num_wanted == 0) return {};
  if (draw.num_wanted == draw.num_left) {
    return {.low = kAllKeys, .high = kAllKeys, .num_wanted = draw.num_wanted};
  }
  // The keys are uniform, so the bound is where it is expected, give or take eight deviations.
  const auto total = static_cast<double>(draw.num_left);
  const double share = static_cast<double>(draw.num_wanted) / total;
  const double reach = 8.0 * std::sqrt(share * (1.0 - share) / total) + 16.0 / total;
  return {
      .low = to_key(share - reach), .high = to_key(share + reach), .num_wanted = draw.num_wanted};
}

// Finds for every class the bound below which exactly the wanted number of keys of all ranks lie.
// `class_of(i)` is the class of sample i.
template <typename ClassOf>
class BoundSearch {
 public:
  BoundSearch(const Bitmap& candidates, const ClassOf& class_of, const SampleKeys& keys,
              Communicator& communicator)
      : candidates_(candidates), class_of_(class_of), keys_(keys), communicator_(communicator) {}

  std::vector<Wide> run(std::span<const ClassDraw> draws) {
    for (const ClassDraw& draw : draws) ranges_.push_back(expected_range(draw));
    look();
    bool missed = false;
    for (Range& range : ranges_) {
      if (range.num_wanted < range.num_below) {
        range.high = range.low;
        range.low = 0;
      } else if (range.num_wanted > range.num_below + range.num_inside) {
        range.low = range.high;
        range.high = kAllKeys;
      } else {
        continue;
      }
      missed = true;
    }
    if (missed) look();
    while (narrow()) {
    }
    std::vector<Wide> bounds;
    for (const Range& range : ranges_) bounds.push_back(range.bound());
    return bounds;
  }

 private:
  struct Candidate {
    std::uint64_t key = 0;
    std::size_t number = 0;  // of its class
  };

  // Counts the keys below and in every range.
  void look() {
    inside_.clear();
    std::vector<std::int64_t> counts(2 * ranges_.size(), 0);
    for_each_bit(candidates_, [&](std::size_t i) {
      const std::uint64_t key = keys_(i);
      const std::size_t c = class_of_(i);
      if (key < ranges_[c].low) {
        ++counts[2 * c];
      } else if (key < ranges_[c].high) {
        ++counts[2 * c + 1];
        inside_.push_back({key, c});
      }
    });
    communicator_.all_reduce(counts);
    for (std::size_t c = 0; c < ranges_.size(); ++c) {
      ranges_[c].num_below = static_cast<std::uint64_t>(counts[2 * c]);
      ranges_[c].num_inside = static_cast<std::uint64_t>(counts[2 * c + 1]);
    }
  }

  // Every range to the one of kBins equal bins that has the bound. False: there was nothing to do.
  bool narrow() {
    std::vector<std::size_t> first_bins(ranges_.size(), 0);
    std::size_t num_bins = 0;
    for (std::size_t c = 0; c < ranges_.size(); ++c) {
      if (ranges_[c].is_found()) continue;
      first_bins[c] = num_bins;
      num_bins += kBins;
    }
    if (num_bins == 0) return false;
    std::erase_if(inside_, [&](const Candidate& candidate) {
      const Range& range = ranges_[candidate.number];
      return range.is_found() || candidate.key < range.low || candidate.key >= range.high;
    });
    const auto width_of = [](const Range& range) {
      return (range.high - range.low + kBins - 1) / kBins;
    };
    std::vector<std::int64_t> counts(num_bins, 0);
    for (const Candidate& candidate : inside_) {
      const Range& range = ranges_[candidate.number];
      ++counts[first_bins[candidate.number] +
               static_cast<std::size_t>((candidate.key - range.low) / width_of(range))];
    }
    communicator_.all_reduce(counts);
    for (std::size_t c = 0; c < ranges_.size(); ++c) {
      Range& range = ranges_[c];
      if (range.is_found()) continue;
      const auto count_of = [&](std::size_t bin) {
        return static_cast<std::uint64_t>(counts[first_bins[c] + bin]);
      };
      std::size_t bin = 0;
      while (range.num_below + count_of(bin) < range.num_wanted) range.num_below += count_of(bin++);
      range.num_inside = count_of(bin);
      const Wide width = width_of(range);
      range.low += bin * width;
      range.high = std::min(range.high, range.low + width);
    }
    return true;
  }

  const Bitmap& candidates_;
  const ClassOf& class_of_;
  const SampleKeys& keys_;
  Communicator& communicator_;
  std::vector<Range> ranges_;      // of all classes
  std::vector<Candidate> inside_;  // those of this rank that are in their range
};

template <typename ClassOf>
Bitmap choose_below(const Bitmap& candidates, const ClassOf& class_of,
                    std::span<const ClassDraw> draws, const SampleKeys& keys,
                    Communicator& communicator) {
  const std::vector<Wide> bounds =
      BoundSearch<ClassOf>(candidates, class_of, keys, communicator).run(draws);
  Bitmap chosen(candidates.size());
  for_each_bit(candidates, [&](std::size_t i) {
    if (keys(i) < bounds[class_of(i)]) chosen.set(i);
  });
  return chosen;
}

}  // namespace

Bitmap choose_part(const Bitmap& candidates, std::span<const std::int32_t> labels,
                   std::span<const ClassDraw> draws, const SampleKeys& keys,
                   Communicator& communicator) {
  if (labels.empty()) {
    if (draws[0].num_wanted == draws[0].num_left) return candidates;
    if (draws[0].num_wanted == 0) return Bitmap(candidates.size());
    return choose_below(
        candidates, [](std::size_t) { return std::size_t{0}; }, draws, keys, communicator);
  }
  return choose_below(
      candidates, [labels](std::size_t i) { return static_cast<std::size_t>(labels[i]); }, draws,
      keys, communicator);
}

}  // namespace tamis::detail
