#include "tamis/score_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include "core/policies/sharded_view.h"
#include "support/random_input.h"
#include "support/ranks.h"
#include "tamis/scorer.h"

namespace tamis {
namespace {

using Ask = std::function<Bitmap(const ScoreView&)>;

// The samples that a question gives, asked of the local view (0 ranks) or of several ranks.
std::vector<std::size_t> samples_of(const std::vector<float>& scores, std::size_t num_ranks,
                                    const Ask& ask) {
  std::vector<std::size_t> samples;
  std::mutex mutex;
  const auto add = [&](const ScoreView& view) {
    const Bitmap answer = ask(view);
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < answer.size(); ++i) {
      if (answer.test(i)) samples.push_back(view.first() + i);
    }
  };
  if (num_ranks == 0) {
    add(*make_score_view(scores));
  } else {
    test::run_ranks(num_ranks, [&](const auto& communicator) {
      const std::size_t begin = scores.size() * communicator->rank() / num_ranks;
      const std::size_t end = scores.size() * (communicator->rank() + 1) / num_ranks;
      add(detail::ShardedView(std::span(scores).subspan(begin, end - begin), begin, scores.size(),
                              *communicator));
    });
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

std::vector<float> sorted_scores(const std::vector<float>& scores,
                                 const std::vector<std::size_t>& samples) {
  std::vector<float> sorted;
  for (const std::size_t sample : samples) sorted.push_back(scores[sample]);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  return sorted;
}

// Scores with many ties.
std::vector<float> tied_scores(std::size_t count) {
  std::vector<float> scores = test::random_scores(count, 3);
  for (float& score : scores) score = std::floor(score * 4.0F);
  return scores;
}

TEST(ScoreView, FindsTheHighestOfAllRanks) {
  const std::vector<float> scores = tied_scores(3000);
  std::vector<float> highest = scores;
  std::sort(highest.begin(), highest.end(), std::greater<>());
  highest.resize(777);
  const Ask ask = [](const ScoreView& view) { return view.highest(777, {.seed = 1}); };
  for (const std::size_t num_ranks : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(sorted_scores(scores, samples_of(scores, num_ranks, ask)), highest);
  }
  EXPECT_EQ(samples_of(scores, 2, ask), samples_of(scores, 3, ask));
}

TEST(ScoreView, TakesUnscoredSamplesBeforeTheHighest) {
  const std::vector<float> scores = test::random_scores(1000, 5, 0.2);
  const std::set<std::size_t> unscored = [&] {
    std::set<std::size_t> result;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (std::isnan(scores[i])) result.insert(i);
    }
    return result;
  }();
  for (const std::size_t num_ranks : {0U, 1U, 3U}) {
    for (const std::size_t count : {unscored.size() / 2, unscored.size(), std::size_t{600}}) {
      const auto samples = samples_of(scores, num_ranks, [&](const ScoreView& view) {
        return view.unscored_then_highest(count, {});
      });
      EXPECT_EQ(samples.size(), count);
      const auto num_unscored = static_cast<std::size_t>(std::count_if(
          samples.begin(), samples.end(), [&](std::size_t i) { return unscored.contains(i); }));
      EXPECT_EQ(num_unscored, std::min(count, unscored.size()));
    }
  }
}

TEST(ScoreView, CountsAndAveragesOverAllRanks) {
  const std::vector<float> scores = test::random_scores(2000, 7, 0.1);
  const auto local = make_score_view(scores);
  for (const std::size_t num_ranks : {1U, 2U, 4U}) {
    samples_of(scores, num_ranks, [&](const ScoreView& view) {
      EXPECT_EQ(view.num_samples(), 2000U);
      EXPECT_EQ(view.count(view.below(0.5)), local->below(0.5).count());
      EXPECT_EQ(view.mean().num_scored, local->scored().count());
      EXPECT_DOUBLE_EQ(view.mean().value, local->mean().value);
      return Bitmap(view.size());
    });
  }
}

TEST(ScoreView, DrawsDifferByEachOfTheirNumbers) {
  const std::vector<float> scores(1000, kUnscored);
  for (const std::size_t num_ranks : {0U, 2U}) {
    std::set<std::vector<std::size_t>> results;
    for (const Draw draw : {Draw{}, Draw{.seed = 1}, Draw{.epoch = 1}, Draw{.number = 1},
                            Draw{.number = 2}, Draw{.number = 3}}) {
      const Ask ask = [&](const ScoreView& view) { return view.choose(400, draw); };
      const auto samples = samples_of(scores, num_ranks, ask);
      EXPECT_EQ(samples.size(), 400U);
      EXPECT_EQ(samples_of(scores, num_ranks, ask), samples);
      results.insert(samples);
    }
    EXPECT_EQ(results.size(), 6U);
  }
}

// A policy of a user: the half of the samples nearest to the mean, decided by counts alone.
TEST(ScoreView, IsEnoughForAPolicyThatNeverSeesOtherRanks) {
  const std::vector<float> scores = test::random_scores(1501, 9);
  const Ask near_mean = [](const ScoreView& view) {
    const auto mean = static_cast<float>(view.mean().value);
    float reach = 0.0F;
    Bitmap near = view.within(mean, mean);
    while (view.count(near) < view.num_samples() / 2) {
      reach += 0.01F;
      near = view.within(mean - reach, mean + reach);
    }
    return near;
  };
  const auto expected = samples_of(scores, 0, near_mean);
  EXPECT_GE(expected.size(), 750U);
  for (const std::size_t num_ranks : {1U, 2U, 3U}) {
    EXPECT_EQ(samples_of(scores, num_ranks, near_mean), expected);
  }
}

}  // namespace
}  // namespace tamis
