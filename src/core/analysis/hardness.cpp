#include "tamis/analysis/hardness.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tamis::analysis {

HardnessRanking::HardnessRanking(std::size_t num_samples) : entries_(num_samples) {}

void HardnessRanking::add(std::span<const float> scores) {
  detail::require(scores.size() == entries_.size(), "HardnessRanking", "number of scores",
                  detail::concat("that of samples (", entries_.size(), ")"), scores.size());
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!std::isnan(scores[i])) order.push_back(static_cast<std::uint32_t>(i));
  }
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return scores[a] < scores[b]; });
  const double last = order.size() > 1 ? static_cast<double>(order.size() - 1) : 1.0;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && scores[order[end]] == scores[order[begin]]) ++end;
    const double rank = order.size() == 1 ? 1.0 : 0.5 * static_cast<double>(begin + end - 1) / last;
    for (std::size_t k = begin; k < end; ++k) {
      Entry& entry = entries_[order[k]];
      const bool is_hard = rank >= kHardRank;
      entry.rank_sum += rank;
      entry.score = scores[order[k]];
      ++entry.num_scored;
      entry.num_hard += is_hard ? 1 : 0;
      entry.num_in_a_row = is_hard ? entry.num_in_a_row + 1 : 0;
    }
    begin = end;
  }
}

std::size_t HardnessRanking::num_scored() const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.num_scored > 0; }));
}

std::vector<Hardness> HardnessRanking::hardest(std::size_t count) const {
  std::vector<Hardness> all;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.num_scored == 0) continue;
    const auto n = static_cast<double>(entry.num_scored);
    all.push_back({.sample = static_cast<std::uint32_t>(i),
                   .score = entry.score,
                   .rank = entry.rank_sum / n,
                   .hard_share = static_cast<double>(entry.num_hard) / n,
                   .num_hard_in_a_row = entry.num_in_a_row});
  }
  const auto is_harder = [](const Hardness& a, const Hardness& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    return a.score != b.score ? a.score > b.score : a.sample < b.sample;
  };
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
  std::partial_sort(all.begin(), end, all.end(), is_harder);
  all.erase(end, all.end());
  return all;
}

}  // namespace tamis::analysis
