#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/rounding.h"
#include "support/golden.h"
#include "support/random_input.h"
#include "support/registered.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

std::vector<std::size_t> kept_of(const Selection& selection) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < selection.kept.size(); ++i) {
    if (selection.kept.test(i)) kept.push_back(i);
  }
  return kept;
}

std::vector<float> golden_vector(const nlohmann::json& value) {
  if (value.is_array()) return value.get<std::vector<float>>();
  return std::vector<float>(value["count"].get<std::size_t>(), value["fill"].get<float>());
}

TEST(InfoBatch, SelectsAsManyAsTheAuthorsCode) {
  const auto golden = test::load_golden("infobatch_selection.json");
  for (const auto& entry : golden["cases"]) {
    const auto ratio = entry["prune_ratio"].get<double>();
    if (ratio > 0.9) {
      EXPECT_THROW(make_policy({"infobatch", {{"prune_ratio", ratio}}}), std::invalid_argument);
      continue;
    }
    const auto scores = golden_vector(golden["score_vectors"][entry["name"].get<std::string>()]);
    const auto selection = make_policy({"infobatch", {{"prune_ratio", ratio}}})
                               ->select({.scores = *make_score_view(scores)});
    EXPECT_NEAR(*selection.report.threshold, entry["mean"].get<double>(), 1e-12);
    EXPECT_EQ(*selection.report.num_below, entry["num_below_mean"].get<std::size_t>());
    EXPECT_EQ(*selection.report.num_kept_of_below, entry["num_kept_of_below"].get<std::size_t>());
    EXPECT_EQ(selection.kept.count(), entry["plan_size"].get<std::size_t>());
    EXPECT_FLOAT_EQ(selection.rescale, entry["weight_of_kept_below"].get<float>());
  }
}

TEST(InfoBatch, KeepsEverySampleScoringAboveTheMean) {
  const auto scores = test::random_scores(5000, 1, 0.1);
  const auto selection = make_policy({"infobatch"})
                             ->select({.scores = *make_score_view(scores), .epoch = 3, .seed = 4});
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const bool easy = static_cast<double>(scores[i]) < *selection.report.threshold;
    if (!easy) {
      EXPECT_TRUE(selection.kept.test(i));
    }
    EXPECT_EQ(selection.rescaled.test(i), easy && selection.kept.test(i));
  }
}

TEST(InfoBatch, PrunesNothingWhenAllScoresAreEqual) {
  for (const float value : {0.1F, 0.3F, 1.0F / 3.0F, 2.3025851F, 1e-30F, 1e30F}) {
    for (const std::size_t n : {1U, 7U, 1000U, 123457U}) {
      const std::vector<float> scores(n, value);
      EXPECT_EQ(
          make_policy({"infobatch"})->select({.scores = *make_score_view(scores)}).kept.count(), n)
          << value;
    }
  }
}

TEST(InfoBatch, KeepsEverythingWhileNothingIsScored) {
  const std::vector<float> scores(100, kUnscored);
  const auto selection = make_policy({"infobatch"})->select({.scores = *make_score_view(scores)});
  EXPECT_EQ(selection.kept.count(), 100U);
  EXPECT_TRUE(selection.rescaled.empty());
}

// The sum of the weights of the easy samples is their number, so that the gradient stays unbiased.
TEST(InfoBatch, WeightsMakeUpForWhatWasLeftOut) {
  for (const double ratio : {0.1, 0.3, 0.5, 0.75, 0.9}) {
    const auto scores = test::random_scores(20000, 5);
    const auto selection = make_policy({"infobatch", {{"prune_ratio", ratio}}})
                               ->select({.scores = *make_score_view(scores)});
    const double total = static_cast<double>(*selection.report.num_kept_of_below) *
                         static_cast<double>(selection.rescale);
    EXPECT_NEAR(total, static_cast<double>(*selection.report.num_below), 1.0 / (1.0 - ratio));
  }
}

TEST(Seta, UsesTheGroupsThatTheAuthorsCodeUses) {
  for (const auto& entry : test::load_golden("seta_windows.json")) {
    const Spec spec{"seta",
                    {{"prune_ratio", 0.0},
                     {"groups", entry["num_groups"].get<double>()},
                     {"window_scale", entry["window_scale"].get<double>()}}};
    if (entry.contains("error")) {
      EXPECT_THROW(make_policy(spec), std::invalid_argument);
      continue;
    }
    const auto scores = test::random_scores(500, 2);
    for (std::size_t t = 0; t < entry["ranges"].size(); ++t) {
      const auto report =
          make_policy(spec)->select({.scores = *make_score_view(scores), .epoch = t}).report;
      EXPECT_EQ(*report.window_begin, entry["ranges"][t][0].get<std::size_t>());
      EXPECT_EQ(*report.window_end, entry["ranges"][t][1].get<std::size_t>());
    }
  }
}

TEST(Seta, KeepsTheSamplesOfItsWindowAndTheUnscored) {
  const auto scores = test::random_scores(3000, 8, 0.2);
  const auto selection =
      make_policy({"seta", {{"prune_ratio", 0.0}, {"groups", 6}, {"window_scale", 0.5}}})
          ->select({.scores = *make_score_view(scores), .epoch = 2, .seed = 1});
  const auto& groups = selection.report.groups;
  const float low = groups[*selection.report.window_begin].low;
  const float high = groups[*selection.report.window_end - 1].high;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const bool expected = std::isnan(scores[i]) || (scores[i] >= low && scores[i] <= high);
    EXPECT_EQ(selection.kept.test(i), expected) << i;
  }
}

TEST(Seta, UsesFewerGroupsForFewDistinctScores) {
  std::vector<float> scores(90);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i % 3);
  const auto selection =
      make_policy({"seta", {{"prune_ratio", 0.0}, {"groups", 10}, {"window_scale", 0.5}}})
          ->select({.scores = *make_score_view(scores), .epoch = 1});
  ASSERT_EQ(selection.report.groups.size(), 3U);
  for (const auto& group : selection.report.groups) EXPECT_EQ(group.size, 30U);
  EXPECT_EQ(selection.kept.count(), 60U);  // window 2 of 3, starting at group 1
}

// Ties at the border too: a static subset is drawn once.
TEST(Subset, IsTheHighestScoredSamplesAndTheSameInEveryEpoch) {
  const std::vector<float> scores = {5.0F, 1.0F, 1.0F, 1.0F, 1.0F, 9.0F, 1.0F, 1.0F};
  const auto view = make_score_view(scores);
  const auto policy = make_policy({"subset", {{"prune_ratio", 0.5}}});
  const Bitmap first = policy->select({.scores = *view, .epoch = 0, .seed = 7}).kept;
  EXPECT_EQ(first.count(), 4U);
  EXPECT_TRUE(first.test(0));
  EXPECT_TRUE(first.test(5));
  for (std::uint64_t epoch = 1; epoch < 20; ++epoch) {
    EXPECT_EQ(policy->select({.scores = *view, .epoch = epoch, .seed = 7}).kept, first);
  }
}

TEST(Subset, LeavesNothingOutBeforeScoresAreGiven) {
  const std::vector<float> scores(6, kUnscored);
  const auto view = make_score_view(scores);
  const auto policy = make_policy({"subset", {{"prune_ratio", 0.5}}});
  EXPECT_EQ(policy->select({.scores = *view}).kept.count(), 6U);
}

TEST(Seta, KeepsTheRandomSubsetWhileNothingIsScored) {
  const std::vector<float> scores(1000, kUnscored);
  const auto selection =
      make_policy({"seta"})->select({.scores = *make_score_view(scores), .epoch = 4});
  EXPECT_EQ(selection.kept.count(), 900U);
  EXPECT_TRUE(selection.report.groups.empty());
}

TEST(EpsilonGreedy, KeepsTheHighestAndSomeOfTheRest) {
  const auto scores = test::random_scores(1000, 3);
  const auto selection = make_policy({"epsilon-greedy", {{"prune_ratio", 0.5}, {"epsilon", 0.2}}})
                             ->select({.scores = *make_score_view(scores), .epoch = 1, .seed = 2});
  EXPECT_EQ(selection.kept.count(), 500U);
  auto sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::size_t num_top = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] >= sorted[399]) {
      EXPECT_TRUE(selection.kept.test(i));
      ++num_top;
    }
  }
  EXPECT_EQ(num_top, 400U);
}

TEST(Ucb, KeepsExactlyTheHighestScored) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto scores = test::random_scores(100 + seed * 7, seed);
    for (std::size_t i = 0; i < scores.size(); i += 2)
      scores[i] = -std::floor(scores[i]);  // ties, -0
    const auto kept = kept_of(make_policy({"ucb", {{"prune_ratio", 0.37}}})
                                  ->select({.scores = *make_score_view(scores), .seed = seed}));
    auto sorted = scores;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    ASSERT_EQ(kept.size(), detail::floor_share(1.0 - 0.37, scores.size()));
    for (const std::size_t i : kept) EXPECT_GE(scores[i], sorted[kept.size() - 1]);
  }
}

TEST(Ucb, PutsUnscoredSamplesFirst) {
  auto scores = test::random_scores(100, 1);
  for (std::size_t i = 0; i < 30; ++i) scores[i] = kUnscored;
  const auto some =
      make_policy({"ucb", {{"prune_ratio", 0.5}}})->select({.scores = *make_score_view(scores)});
  EXPECT_EQ(some.kept.count(), 50U);
  for (std::size_t i = 0; i < 30; ++i) EXPECT_TRUE(some.kept.test(i));
  const auto few = kept_of(
      make_policy({"ucb", {{"prune_ratio", 0.9}}})->select({.scores = *make_score_view(scores)}));
  EXPECT_EQ(few.size(), 10U);
  for (const std::size_t i : few) EXPECT_LT(i, 30U);
}

TEST(Trim, LeavesOutTheHighestAfterTheWarmUp) {
  const std::vector<float> scores = {5, 1, 4, 2, 3, kUnscored, 0, 6, 7, 8};
  const auto policy = make_policy({"trim", {{"prune_ratio", 0.3}, {"warmup_epochs", 2}}});
  EXPECT_EQ(policy->select({.scores = *make_score_view(scores), .epoch = 1}).kept.count(), 10U);
  const std::vector<std::size_t> expected = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(kept_of(policy->select({.scores = *make_score_view(scores), .epoch = 2})), expected);
}

TEST(Trim, NeverLeavesOutAnUnscoredSample) {
  std::vector<float> scores(10, kUnscored);
  scores[4] = 1.0F;
  const auto selection = make_policy({"trim", {{"prune_ratio", 0.5}, {"warmup_epochs", 0}}})
                             ->select({.scores = *make_score_view(scores)});
  EXPECT_EQ(selection.kept.count(), 9U);
  EXPECT_FALSE(selection.kept.test(4));
}

TEST(Random, StaysTheSameOrChangesAsItsNameSays) {
  const std::vector<float> scores(1000, kUnscored);
  const auto fixed = make_policy({"random"});
  const auto dynamic = make_policy({"random-dynamic"});
  const auto at = [&](const Policy& policy, std::uint64_t epoch, std::uint64_t seed) {
    return policy.select({.scores = *make_score_view(scores), .epoch = epoch, .seed = seed}).kept;
  };
  EXPECT_EQ(at(*fixed, 0, 1), at(*fixed, 9, 1));
  EXPECT_NE(at(*fixed, 0, 1), at(*fixed, 0, 2));
  EXPECT_NE(at(*dynamic, 0, 1), at(*dynamic, 9, 1));
}

// What every registered policy must do.
class PolicyConformance : public testing::TestWithParam<std::string> {};

TEST_P(PolicyConformance, HasACompleteSpecThatMakesItAgain) {
  const auto policy = make_policy({GetParam()});
  EXPECT_EQ(policy->spec().name, GetParam());
  EXPECT_EQ(make_policy(policy->spec())->spec(), policy->spec());
  EXPECT_EQ(policy->spec().options.size(), find_policy(GetParam()).options.size());
  EXPECT_NO_THROW(find_scorer(find_policy(GetParam()).default_score));
}

TEST_P(PolicyConformance, DependsOnItsInputAlone) {
  const auto scores = test::random_scores(2000, 6, 0.05);
  const auto view = make_score_view(scores);
  const PolicyInput input{.scores = *view, .epoch = 7, .seed = 3};
  const auto first = make_policy({GetParam()})->select(input);
  const auto second = make_policy({GetParam()})->select(input);
  EXPECT_EQ(first.kept, second.kept);
  EXPECT_EQ(first.rescaled, second.rescaled);
}

TEST_P(PolicyConformance, RescalesOnlyWhatItKeeps) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto scores = test::random_scores(300 + seed, seed, seed % 3 == 0 ? 0.3 : 0.0);
    for (const std::uint64_t epoch : {0U, 1U, 6U}) {
      const auto selection =
          make_policy({GetParam()})
              ->select({.scores = *make_score_view(scores), .epoch = epoch, .seed = seed});
      ASSERT_EQ(selection.kept.size(), scores.size());
      if (selection.rescaled.empty()) continue;
      Bitmap outside = selection.rescaled;
      outside -= selection.kept;
      EXPECT_EQ(outside.count(), 0U);
    }
  }
}

TEST_P(PolicyConformance, SurvivesEveryExtremeInput) {
  const std::vector<std::vector<float>> inputs = {{kUnscored},
                                                  {1.0F},
                                                  {1.0F, 1.0F},
                                                  {0.0F, -0.0F, 0.0F},
                                                  {kUnscored, 2.0F},
                                                  std::vector<float>(70, kUnscored),
                                                  std::vector<float>(70, -3.5F),
                                                  {-1e38F, 1e38F, 3e38F, -3e38F},
                                                  {1e-45F, 0.0F, 1e-38F}};
  for (const auto& scores : inputs) {
    for (const std::uint64_t epoch : {0U, 1U, 5U, 6U, 1000000U}) {
      const auto policy = make_policy({GetParam()});
      const auto selection = policy->select({.scores = *make_score_view(scores), .epoch = epoch});
      EXPECT_LE(selection.kept.count(), scores.size());
      EXPECT_LE(policy->anneal({.scores = *make_score_view(scores), .epoch = epoch}).kept.count(),
                scores.size());
    }
  }
}

TEST_P(PolicyConformance, RefusesARatioOutOfRange) {
  if (find_policy(GetParam()).options.empty()) return;  // `none` has nothing to refuse
  for (const double ratio : {-0.1, 1.0, 1.5, std::nan("")}) {
    try {
      make_policy({GetParam(), {{"prune_ratio", ratio}}});
      ADD_FAILURE() << ratio;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("prune_ratio must be in [0, "), std::string::npos);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, PolicyConformance,
                         testing::ValuesIn(test::names_of(registered_policies())), test::test_name);

TEST(Registry, RefusesPolicyOptionsOutOfRange) {
  const std::vector<Spec> bad = {
      {"seta", {{"groups", 0.0}}},        {"seta", {{"groups", 2.5}}},
      {"seta", {{"groups", -1.0}}},       {"seta", {{"window_scale", 0.0}}},
      {"seta", {{"window_scale", 1.1}}},  {"seta", {{"window_scale", 0.05}}},
      {"seta", {{"groups", 1e12}}},       {"epsilon-greedy", {{"epsilon", 1.1}}},
      {"trim", {{"warmup_epochs", 0.5}}}, {"infobatch", {{"alpha", 0.5}}}};
  for (const Spec& spec : bad) {
    try {
      make_policy(spec);
      ADD_FAILURE() << spec.name << " " << spec.options.begin()->first;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(spec.options.begin()->first), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tamis
