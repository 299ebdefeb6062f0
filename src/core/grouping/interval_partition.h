// The best cut of an ordered sequence of blocks into groups, with a proof of how good it is.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tamis::detail {

// Count, mean and sum of squared deviations of some scores. The mean is base + offset, where base
// is a score at or below all of them: differences of means keep their precision however far from
// zero the scores are.
struct Moments {
  double count = 0.0;
  double base = 0.0;
  double offset = 0.0;
  double squares = 0.0;

  double mean() const { return base + offset; }
};

// The moments of both sets together. Only adds numbers >= 0 to the squares: nothing cancels.
inline Moments merge(const Moments& left, const Moments& right) {
  const double distance = (right.base - left.base) + (right.offset - left.offset);
  const double share = right.count / (left.count + right.count);
  return {.count = left.count + right.count,
          .base = left.base,
          .offset = left.offset + distance * share,
          .squares = left.squares + right.squares + distance * distance * left.count * share};
}

// Scores that are neighbours in order. A block without squares holds one value only.
struct Block {
  Moments moments;
  double low = 0.0;   // no score of the block is below
  double high = 0.0;  // or above
};

// Cut j lies between blocks p - 1 and p for some first <= p <= last, or inside a block between.
struct Window {
  std::size_t first = 0;
  std::size_t last = 0;

  friend bool operator==(const Window&, const Window&) = default;
};

struct IntervalPartition {
  // Group j holds blocks [cuts[j], cuts[j + 1]). It is empty if fewer groups cost the same.
  std::vector<std::size_t> cuts;
  // Sum over the groups of the squared deviations from the group's mean.
  double cost = 0.0;
  // No partition of the scores into as many groups costs less than cost - max_excess, even if it
  // cuts through blocks.
  double max_excess = 0.0;
  // Where the cuts of a cheaper partition can be: one window per cut, outer ends included.
  std::vector<Window> windows;
  // How much max_excess owes to a block that a cheaper partition might cut; 0 for all others.
  std::vector<double> block_excess;
};

// The cheapest partition of `blocks` into groups, one fewer than there are windows, with its cuts
// inside their windows. Requires: blocks not empty, windows.front() = {0, 0}, windows.back() =
// {n, n} for n blocks, neither end of the windows ever decreasing.
// O(G w log w) for G groups and windows of w positions, and O(n log n) to set up.
IntervalPartition best_partition(std::span<const Block> blocks, std::span<const Window> windows);

}  // namespace tamis::detail
