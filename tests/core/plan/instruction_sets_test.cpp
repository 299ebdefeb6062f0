// Selections, groups and orders do not depend on the instruction set.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/random/shuffle.h"
#include "base/random/subset.h"
#include "base/simd/kernels.h"
#include "core/grouping/kmeans_1d.h"
#include "core/policies/score_masks.h"
#include "core/policies/score_statistics.h"

namespace tamis::detail {
namespace {

// What plans are made of, as numbers.
std::vector<double> plan_parts(const std::vector<float>& scores) {
  const ScoreStatistics statistics = score_statistics(scores);
  const Bitmap easy = below(scores, statistics.mean);
  RandomStream random(3, scores.size(), Purpose::selection);
  const Bitmap chosen = choose(easy, easy.count(), easy.count() / 3, random);
  const ScoreGroups groups = kmeans_1d(scores, chosen, 7);
  Bitmap kept(scores.size(), true);
  kept -= chosen;
  const auto order = shuffled_positions(kept, kept.count(), 3, scores.size());
  std::vector<double> parts = {statistics.mean, groups.within_group_sum_of_squares};
  for (const ScoreGroup& group : groups.groups) {
    parts.insert(parts.end(),
                 {static_cast<double>(group.size), group.low, group.high, group.center});
  }
  parts.insert(parts.end(), order.begin(), order.end());
  return parts;
}

// Sizes at which every way to shuffle and to group is taken.
TEST(InstructionSets, MakeTheSamePlansBitForBit) {
  std::mt19937_64 random(7);
  std::gamma_distribution<float> gamma(2.0F, 1.0F);
  for (const std::size_t size : {1000U, 400'003U, 4'500'001U}) {
    std::vector<float> scores(size);
    for (float& score : scores) score = gamma(random);
    std::vector<double> portable;
    for (const InstructionSet set : available_sets()) {
      const UseInstructionSet use(set);
      auto parts = plan_parts(scores);
      if (set == InstructionSet::portable)
        portable = std::move(parts);
      else
        EXPECT_TRUE(parts == portable) << name_of(set) << " " << size;
    }
    EXPECT_GT(portable.size(), size / 2);
  }
}

}  // namespace
}  // namespace tamis::detail
