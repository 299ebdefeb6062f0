// Dynamic programming over the positions between blocks, by divide and conquer: the best last cut
// before p never moves left as p moves right (Wu 1991; Wang and Song 2011).
//
// The bound. Let an optimal partition of the scores cut through a block with w scores and squares
// q, and let L < R be the means of the groups on both sides. Moving the whole block to one side,
// the better one, costs at most (R - L) sqrt(w q): with parts of w1, w2 scores and means m1, m2 it
// is at most 2 (R - L) D, D = w1 w2 (m2 - m1) / w, and q >= w1 w2 (m2 - m1)^2 / w. A block that is
// cut more than once can become a group of its own, which costs at most q. So the best partition
// that respects the blocks costs at most the sum of this over the cuts more than the optimum, and a
// block can only contain cut j if the best partition with cut j at one of its edges is within that
// sum of the best of all. This narrows the windows, and with them the bound on R - L.
#include "core/grouping/interval_partition.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tamis::detail {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Covers the rounding of sums of positive numbers; anything closer counts as equal.
constexpr double kRounding = 1e-12;

// Moments of any range of blocks from two precomputed ones: a disjoint sparse table.
class RangeMoments {
 public:
  explicit RangeMoments(std::span<const Block> blocks) : size_(blocks.size()) {
    const auto num_levels =
        std::max<std::size_t>(1, static_cast<std::size_t>(std::bit_width(size_ - 1)));
    table_.resize(num_levels * size_);
    for (std::size_t i = 0; i < size_; ++i) table_[i] = blocks[i].moments;
    for (std::size_t level = 1; level < num_levels; ++level) fill(level);
  }

  // Moments of blocks [begin, end). Requires: begin < end.
  Moments operator()(std::size_t begin, std::size_t end) const {
    const std::size_t last = end - 1;
    if (begin == last) return table_[begin];
    const Moments* row = &table_[level_of(begin, last) * size_];
    return merge(row[begin], row[last]);
  }

  // Calls use(p, squares of blocks [p, end)) for p = begin .. min(last, end).
  template <typename Use>
  void costs_before(std::size_t begin, std::size_t last, std::size_t end, Use use) const {
    std::size_t p = begin;
    while (p <= last && p + 1 < end) {
      const std::size_t level = level_of(p, end - 1);
      const Moments* row = &table_[level * size_];
      const Moments right = row[end - 1];
      const std::size_t stop = std::min(last + 1, (end - 1) >> level << level);
      for (; p < stop; ++p) use(p, merged_squares(row[p], right));
    }
    if (p <= last && p + 1 == end) {
      use(p, table_[p].squares);
      ++p;
    }
    if (p <= last && p == end) use(p, 0.0);
  }

  // Calls use(p, squares of blocks [begin, p)) for p = max(first, begin) .. last.
  template <typename Use>
  void costs_after(std::size_t begin, std::size_t first, std::size_t last, Use use) const {
    std::size_t p = std::max(first, begin);
    if (p == begin) {
      use(p, 0.0);
      ++p;
    }
    if (p <= last && p == begin + 1) {
      use(p, table_[begin].squares);
      ++p;
    }
    while (p <= last) {
      const std::size_t level = level_of(begin, p - 1);
      const Moments* row = &table_[level * size_];
      const Moments left = row[begin];
      const std::size_t stop = std::min(last + 1, (((begin >> level) + 2) << level) + 1);
      for (; p < stop; ++p) use(p, merged_squares(left, row[p - 1]));
    }
  }

 private:
  // The level whose sections have `begin` in the first and `last` in the second half.
  static std::size_t level_of(std::size_t begin, std::size_t last) {
    return static_cast<std::size_t>(std::bit_width(begin ^ last)) - 1;
  }

  static double merged_squares(const Moments& left, const Moments& right) {
    const double distance = (right.base - left.base) + (right.offset - left.offset);
    return left.squares + right.squares +
           distance * distance * left.count * right.count / (left.count + right.count);
  }

  // Ranges that end or begin in the middle of an aligned section of 2^(level + 1) blocks.
  void fill(std::size_t level) {
    Moments* row = &table_[level * size_];
    const std::size_t half = std::size_t{1} << level;
    for (std::size_t middle = half; middle < size_; middle += 2 * half) {
      row[middle - 1] = table_[middle - 1];
      for (std::size_t i = middle - 1; i-- > middle - half;) row[i] = merge(table_[i], row[i + 1]);
      row[middle] = table_[middle];
      const std::size_t end = std::min(size_, middle + half);
      for (std::size_t i = middle + 1; i < end; ++i) row[i] = merge(row[i - 1], table_[i]);
    }
  }

  std::size_t size_;
  std::vector<Moments> table_;
};

// The best cost of one side of a cut, for every position of the cut's window.
struct Layer {
  std::size_t first = 0;
  std::vector<double> costs;
  std::vector<std::size_t> nexts;  // where the neighbouring cut is then

  explicit Layer(const Window& window)
      : first(window.first),
        costs(window.last - window.first + 1, kInfinity),
        nexts(costs.size(), window.first) {}

  std::size_t last() const { return first + costs.size() - 1; }
  double cost(std::size_t position) const { return costs[position - first]; }
};

// Extends `from` by one group that lies between its positions and those of `to`.
class Extension {
 public:
  Extension(const RangeMoments& ranges, const Layer& from, Layer& to)
      : ranges_(ranges), from_(from), to_(to) {}

  void forward() {
    const auto costs = [this](std::size_t low, std::size_t high, std::size_t middle, auto use) {
      ranges_.costs_before(low, high, middle, use);
      return low;
    };
    fill(to_.first, to_.last(), from_.first, from_.last(), costs);
  }
  void backward() {
    const auto costs = [this](std::size_t low, std::size_t high, std::size_t middle, auto use) {
      ranges_.costs_after(middle, low, high, use);
      return high;
    };
    fill(to_.first, to_.last(), from_.first, from_.last(), costs);
  }

 private:
  // Fills positions [begin, last], whose best neighbours are in [low, high]. `costs` returns the
  // neighbour to take where none is reached.
  template <typename Costs>
  void fill(std::size_t begin, std::size_t last, std::size_t low, std::size_t high,
            const Costs& costs) {
    const std::size_t middle = begin + (last - begin) / 2;
    std::size_t best = 0;
    double best_cost = kInfinity;
    const std::size_t fallback = costs(low, high, middle, [&](std::size_t p, double squares) {
      const double cost = from_.cost(p) + squares;
      if (cost < best_cost) {
        best_cost = cost;
        best = p;
      }
    });
    if (best_cost == kInfinity) best = fallback;
    put(middle, best, best_cost);
    if (begin < middle) fill(begin, middle - 1, low, best, costs);
    if (middle < last) fill(middle + 1, last, best, high, costs);
  }

  void put(std::size_t position, std::size_t next, double cost) {
    to_.costs[position - to_.first] = cost;
    to_.nexts[position - to_.first] = next;
  }

  const RangeMoments& ranges_;
  const Layer& from_;
  Layer& to_;
};

// Narrows the windows and the bound together.
class Certificate {
 public:
  Certificate(std::span<const Block> blocks, const RangeMoments& ranges,
              std::span<const Layer> forward, std::span<const Layer> backward, double cost,
              std::span<const Window> windows)
      : blocks_(blocks),
        ranges_(ranges),
        windows_(windows.begin(), windows.end()),
        slack_(windows.size()),
        excess_(windows.size()) {
    for (std::size_t j = 1; j + 1 < windows_.size(); ++j) {
      const Window& window = windows_[j];
      for (std::size_t b = window.first; b < window.last; ++b) {
        const double through = std::min(forward[j].cost(b) + backward[j].cost(b),
                                        forward[j].cost(b + 1) + backward[j].cost(b + 1));
        slack_[j].push_back(through - cost * (1.0 + kRounding));
      }
      excess_[j].resize(slack_[j].size());
    }
    origin_ = windows_;
  }

  void narrow() {
    constexpr int kMaxRounds = 16;
    measure();
    for (int round = 0; round < kMaxRounds && shrink(); ++round) measure();
  }

  void report(IntervalPartition& partition) const {
    partition.max_excess = total_;
    partition.windows = windows_;
    partition.block_excess.assign(blocks_.size(), 0.0);
    for (std::size_t j = 1; j + 1 < windows_.size(); ++j) {
      for (std::size_t b = windows_[j].first; b < windows_[j].last; ++b) {
        if (!is_possible(j, b)) continue;
        double& worst = partition.block_excess[b];
        worst = std::max(worst, excess_[j][b - origin_[j].first]);
      }
    }
  }

 private:
  // Whether a partition at least as good as the best known may have cut j inside block b.
  bool is_possible(std::size_t j, std::size_t b) const {
    const std::size_t i = b - origin_[j].first;
    return slack_[j][i] <= total_ - worst_[j] + excess_[j][i];
  }

  // What an optimal partition with cut j inside block b can lose there.
  double excess(std::size_t j, std::size_t b) const {
    const Moments& moments = blocks_[b].moments;
    if (moments.squares == 0.0) return 0.0;
    const std::size_t begin = windows_[j - 1].first;
    const std::size_t end = windows_[j + 1].last;
    const double left = begin < b ? ranges_(begin, b).mean() : blocks_[b].low;
    const double right = b + 1 < end ? ranges_(b + 1, end).mean() : blocks_[b].high;
    // The cut is half way between the means of its groups, and it is inside the block.
    const double distance =
        std::min({right - left, 2.0 * (blocks_[b].high - left), 2.0 * (right - blocks_[b].low)});
    const double once = std::max(0.0, distance) * std::sqrt(moments.count * moments.squares);
    const bool cut_again = b < windows_[j - 1].last || b >= windows_[j + 1].first;
    return cut_again ? std::max(once, moments.squares) : once;
  }

  void measure() {
    worst_.assign(windows_.size(), 0.0);
    for (std::size_t j = 1; j + 1 < windows_.size(); ++j) {
      for (std::size_t b = windows_[j].first; b < windows_[j].last; ++b) {
        const std::size_t i = b - origin_[j].first;
        if (slack_[j][i] == kInfinity) continue;
        excess_[j][i] = excess(j, b);
        worst_[j] = std::max(worst_[j], excess_[j][i]);
      }
    }
    total_ = 0.0;
    for (const double worst : worst_) total_ += worst;
  }

  // Rules out blocks, then windows' ends. Returns whether there were any.
  bool shrink() {
    bool changed = false;
    for (std::size_t j = 1; j + 1 < windows_.size(); ++j) {
      for (std::size_t b = windows_[j].first; b < windows_[j].last; ++b) {
        double& slack = slack_[j][b - origin_[j].first];
        if (slack == kInfinity || is_possible(j, b)) continue;
        slack = kInfinity;
        changed = true;
      }
    }
    for (std::size_t j = 1; j + 1 < windows_.size(); ++j) {
      Window& window = windows_[j];
      window.first = std::max(window.first, windows_[j - 1].first);
      while (window.first < window.last && !is_possible(j, window.first)) ++window.first;
    }
    for (std::size_t j = windows_.size() - 1; j-- > 1;) {
      Window& window = windows_[j];
      window.last = std::min(window.last, windows_[j + 1].last);
      while (window.first < window.last && !is_possible(j, window.last - 1)) --window.last;
    }
    return changed;
  }

  std::span<const Block> blocks_;
  const RangeMoments& ranges_;
  std::vector<Window> windows_;
  std::vector<Window> origin_;
  // Per cut and block of the original window: cost above the best with the cut at the block.
  std::vector<std::vector<double>> slack_;
  std::vector<std::vector<double>> excess_;
  std::vector<double> worst_;
  double total_ = 0.0;
};

}  // namespace

IntervalPartition best_partition(std::span<const Block> blocks, std::span<const Window> windows) {
  const RangeMoments ranges(blocks);
  std::vector<Layer> forward(windows.begin(), windows.end());
  std::vector<Layer> backward = forward;
  const std::size_t last = windows.size() - 1;
  forward.front().costs[0] = 0.0;
  backward.back().costs[0] = 0.0;
  for (std::size_t j = 1; j <= last; ++j) {
    Extension(ranges, forward[j - 1], forward[j]).forward();
  }
  for (std::size_t j = last; j > 0; --j) {
    Extension(ranges, backward[j], backward[j - 1]).backward();
  }

  IntervalPartition partition;
  partition.cost = forward[last].costs[0];
  partition.cuts.assign(windows.size(), 0);
  partition.cuts[last] = blocks.size();
  for (std::size_t j = last; j > 0; --j) {
    const std::size_t position = partition.cuts[j];
    partition.cuts[j - 1] = forward[j].nexts[position - forward[j].first];
  }
  Certificate certificate(blocks, ranges, forward, backward, partition.cost, windows);
  certificate.narrow();
  certificate.report(partition);
  return partition;
}

}  // namespace tamis::detail
