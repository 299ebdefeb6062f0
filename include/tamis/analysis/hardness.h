// Which samples are hard most often and most lastingly: the suspects for wrong labels and bad data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tamis::analysis {

struct Hardness {
  std::uint32_t sample = 0;
  float score = 0.0F;  // the last one
  // Mean over all snapshots with a score of its rank among the scored samples: 0 the lowest score,
  // 1 the highest; equal scores share the mean of their ranks.
  double rank = 0.0;
  // Share of these snapshots in which its rank was at least kHardRank.
  double hard_share = 0.0;
  std::size_t num_hard_in_a_row = 0;  // such snapshots, the last one included
};

inline constexpr double kHardRank = 0.9;

// Gathers scores of all samples at several times, one after each epoch. 24 bytes per sample.
class HardnessRanking {
 public:
  explicit HardnessRanking(std::size_t num_samples);

  // The scores of all samples now, NaN where there is none: that sample stays as it was. Throws
  // std::invalid_argument for another number of scores. O(n log n).
  void add(std::span<const float> scores);
  // Samples with a score in some snapshot.
  std::size_t num_scored() const;

  // The `count` hardest, hardest first: by mean rank, then by the last score, then by index. Fewer
  // if fewer have a score.
  std::vector<Hardness> hardest(std::size_t count) const;

 private:
  struct Entry {
    double rank_sum = 0.0;
    float score = 0.0F;
    std::uint32_t num_scored = 0;
    std::uint32_t num_hard = 0;
    std::uint32_t num_in_a_row = 0;
  };

  std::vector<Entry> entries_;
};

}  // namespace tamis::analysis
