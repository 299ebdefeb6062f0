// ScoreView: the scores of a data set as a policy sees them, in one process or spread over ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tamis/bitmap.h"
#include "tamis/selection.h"

namespace tamis {

// Names a random choice. Equal draws from equal candidates choose the same samples.
struct Draw {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  // 0 for the first choice of a selection, 1 for the second, ...
};

struct ScoreMean {
  std::uint64_t num_scored = 0;
  double value = 0.0;  // mean of the scored; 0 if there are none
};

struct ScoreGroups {
  // From low to high, none empty; fewer than wanted if there are fewer distinct scores.
  std::vector<ScoreGroup> groups;
  double within_group_sum_of_squares = 0.0;
};

// A view holds the scores of samples [first(), first() + size()): of all of them in one process, of
// this rank's part in the sharded layout. Bitmaps have one bit for each of these size() samples.
// Numbers, means and choices are those of the whole data set, so a policy that takes them from here
// follows its rule in every layout, and does not depend on the number of ranks.
//
// Calls marked "collective" are made by all ranks in the same order. Const and without side
// effects.
class ScoreView {
 public:
  virtual ~ScoreView() = default;

  std::uint64_t num_samples() const { return num_samples_; }  // of the whole data set
  std::uint64_t first() const { return first_; }
  std::size_t size() const { return scores_.size(); }
  std::span<const float> scores() const { return scores_; }  // kUnscored where there is none

  // The samples that have a score, a score below `threshold`, a score in [low, high]. An unscored
  // sample is in none of them.
  Bitmap scored() const;
  Bitmap below(double threshold) const;
  Bitmap within(float low, float high) const;

  // Collective: number of members on all ranks.
  std::uint64_t count(const Bitmap& members) const;
  // Collective: replaces every number by its sum over all ranks. Ranks give equally many.
  virtual void sum(std::span<std::int64_t> numbers) const = 0;
  // Collective.
  virtual ScoreMean mean() const = 0;

  // Collective: `count` of the candidates of all ranks, or of all samples, every such subset
  // equally likely. Requires: there are that many.
  virtual Bitmap choose(const Bitmap& candidates, std::uint64_t count, const Draw& draw) const = 0;
  Bitmap choose(std::uint64_t count, const Draw& draw) const;
  // Collective: the `count` highest scored samples; equal scores at the border are chosen at
  // random. Requires: that many samples are scored.
  Bitmap highest(std::uint64_t count, const Draw& draw) const;
  // Collective: `count` samples, first those without a score (at random if they are more), then the
  // highest scored. Requires: there are that many samples.
  Bitmap unscored_then_highest(std::uint64_t count, const Draw& draw) const;

  // Collective: the members of all ranks in groups of the least within-group sum of squares. Group
  // j is the members with groups[j].low <= score <= groups[j].high. Requires: every member has a
  // score, num_groups >= 1.
  virtual ScoreGroups groups(const Bitmap& members, std::size_t num_groups) const = 0;

 protected:
  ScoreView(std::span<const float> scores, std::uint64_t first, std::uint64_t num_samples)
      : scores_(scores), first_(first), num_samples_(num_samples) {}
  ScoreView(const ScoreView&) = default;
  ScoreView& operator=(const ScoreView&) = default;

 private:
  std::span<const float> scores_;
  std::uint64_t first_;
  std::uint64_t num_samples_;
};

// The view of a data set whose scores are all here. For tests of a policy; Pruner makes its own.
// `scores` must outlive it.
std::unique_ptr<ScoreView> make_score_view(std::span<const float> scores);

}  // namespace tamis
