#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "support/golden.h"
#include "support/random_input.h"
#include "support/registered.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

std::vector<float> scores_of(const Scorer& scorer) {
  Array<float> scratch;
  const auto scores = scorer.scores(scratch);
  return {scores.begin(), scores.end()};
}

void observe(Scorer& scorer, const std::vector<std::uint32_t>& indices, double loss) {
  ASSERT_TRUE(scorer.observe({.indices = indices, .mean_loss = loss}));
}

void observe(Scorer& scorer, const std::vector<std::uint32_t>& indices,
             const std::vector<float>& losses) {
  double sum = 0.0;
  for (const float loss : losses) sum += loss;
  ASSERT_TRUE(scorer.observe({.indices = indices,
                              .mean_loss = sum / static_cast<double>(losses.size()),
                              .losses = losses,
                              .norms = losses}));
}

TEST(BatchLoss, ReproducesTheAuthorsScores) {
  for (const auto& trace : test::load_golden("ema_traces.json")) {
    const auto n = trace["num_samples"].get<std::size_t>();
    std::vector<bool> visited(n, false);
    for (const auto& batch : trace["batches"]) {
      for (const auto& index : batch) visited[index.get<std::size_t>()] = true;
    }
    for (const auto& [alpha, by_init] : trace["final_scores"].items()) {
      const std::map<std::string, double> inits = {{"init_zero", 0.0},
                                                   {"init_first_batch_loss", kFirstBatchLoss}};
      for (const auto& [name, init] : inits) {
        const auto scorer =
            make_scorer({"batch-loss", {{"alpha", std::stod(alpha)}, {"initial_score", init}}}, n);
        for (std::size_t k = 0; k < trace["batches"].size(); ++k) {
          observe(*scorer, trace["batches"][k].get<std::vector<std::uint32_t>>(),
                  trace["losses"][k].get<double>());
        }
        const auto scores = scores_of(*scorer);
        for (std::size_t i = 0; i < n; ++i) {
          if (!visited[i]) {
            EXPECT_TRUE(std::isnan(scores[i]));
            continue;
          }
          const auto expected = by_init[name][i].get<double>();
          EXPECT_NEAR(scores[i], expected, 1e-6 * std::abs(expected)) << alpha << " " << name;
        }
      }
    }
  }
}

TEST(BatchLoss, StartsEverySampleAtTheLossOfTheFirstBatch) {
  const auto scorer = make_scorer({"batch-loss", {{"alpha", 0.5}}}, 3);
  observe(*scorer, {0}, 4.0);
  observe(*scorer, {1}, 2.0);
  EXPECT_EQ(scores_of(*scorer)[0], 4.0F);
  EXPECT_EQ(scores_of(*scorer)[1], 3.0F);
  EXPECT_TRUE(std::isnan(scores_of(*scorer)[2]));
}

TEST(BatchLoss, WithAlphaZeroEqualsLastBatchLoss) {
  const auto average = make_scorer({"batch-loss", {{"alpha", 0.0}}}, 50);
  const auto last = make_scorer({"last-batch-loss"}, 50);
  std::mt19937_64 random(1);
  for (int step = 0; step < 100; ++step) {
    const std::vector<std::uint32_t> batch = {static_cast<std::uint32_t>(random() % 50),
                                              static_cast<std::uint32_t>(random() % 50)};
    const double loss = static_cast<double>(random() % 1000) / 100.0;
    observe(*average, batch, loss);
    observe(*last, batch, loss);
  }
  const auto a = scores_of(*average);
  const auto b = scores_of(*last);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << i;
  }
}

TEST(BatchLoss, RefusesToFreezeTheScores) {
  try {
    make_scorer({"batch-loss", {{"alpha", 1.0}}}, 1);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("freezes the scores"), std::string::npos);
  }
}

TEST(LossUcb, StaysFiniteForHugeLosses) {
  const auto scorer = make_scorer({"loss-ucb", {{"decay", 0.5}, {"confidence", 1e5}}}, 1);
  for (const double loss : {-3e38, 3e38, -3e38}) {
    observe(*scorer, {0}, loss);
    EXPECT_TRUE(std::isfinite(scores_of(*scorer)[0]));
  }
}

TEST(LossUcb, FollowsItsFormula) {
  const auto scorer = make_scorer({"loss-ucb", {{"decay", 0.25}, {"confidence", 2.0}}}, 1);
  observe(*scorer, {0}, std::vector<float>{1.0F});
  observe(*scorer, {0}, std::vector<float>{3.0F});
  // m = 1 then 1.5; v = 0 then 0.25 * (3 - 1)^2 = 1.
  EXPECT_FLOAT_EQ(scores_of(*scorer)[0], 1.5F + 2.0F * 1.0F);
}

TEST(BatchLossMean, IsThePlainMeanOfRelativeLosses) {
  const auto scorer = make_scorer({"batch-loss-mean"}, 2);
  observe(*scorer, {0}, 2.0);     // mu = 2, excess 0
  observe(*scorer, {0, 1}, 4.0);  // mu = 3, excess 1/3
  EXPECT_FLOAT_EQ(scores_of(*scorer)[0], 1.0F / 6.0F);
  EXPECT_FLOAT_EQ(scores_of(*scorer)[1], 1.0F / 3.0F);
}

TEST(Reconstruction, FollowsItsFormula) {
  const auto scorer = make_scorer({"reconstruction", {{"step", 0.5}}}, 3);
  observe(*scorer, {0, 1}, 2.0);  // m = 1, mu = 2, no correction
  EXPECT_FLOAT_EQ(scores_of(*scorer)[0], 2.0F);
  observe(*scorer, {1, 2}, 8.0);  // m = 1, mu = 2 + (8 - 2) / 2 = 5; factor sqrt(8 / 5)
  EXPECT_FLOAT_EQ(scores_of(*scorer)[0], 5.0F);
  EXPECT_FLOAT_EQ(scores_of(*scorer)[1], 5.0F * std::sqrt(1.6F));
  EXPECT_FLOAT_EQ(scores_of(*scorer)[2], 5.0F * std::sqrt(1.6F));
}

// What BLR is for: with the same scalars it comes closer to the true losses than BLS.
TEST(Reconstruction, RanksSamplesBetterThanTheMovingAverage) {
  constexpr std::size_t kSamples = 2000;
  constexpr std::size_t kBatch = 20;
  std::mt19937_64 random(7);
  std::vector<double> truth(kSamples);
  std::lognormal_distribution<double> losses(0.0, 1.0);
  for (double& loss : truth) loss = losses(random);
  const auto blr = make_scorer({"reconstruction"}, kSamples);
  const auto bls = make_scorer({"batch-loss"}, kSamples);
  auto order = test::iota_indices<std::uint32_t>(kSamples);
  for (int epoch = 0; epoch < 60; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t k = 0; k < kSamples; k += kBatch) {
      const std::vector<std::uint32_t> batch(
          order.begin() + static_cast<std::ptrdiff_t>(k),
          order.begin() + static_cast<std::ptrdiff_t>(k + kBatch));
      double sum = 0.0;
      for (const auto i : batch) sum += truth[i];
      observe(*blr, batch, sum / kBatch);
      observe(*bls, batch, sum / kBatch);
    }
  }
  const auto correlation = [&](const std::vector<float>& scores) {
    double mean_s = 0.0;
    double mean_t = 0.0;
    for (std::size_t i = 0; i < kSamples; ++i) {
      mean_s += static_cast<double>(scores[i]) / kSamples;
      mean_t += truth[i] / kSamples;
    }
    double st = 0.0;
    double ss = 0.0;
    double tt = 0.0;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const double s = static_cast<double>(scores[i]) - mean_s;
      const double t = truth[i] - mean_t;
      st += s * t;
      ss += s * s;
      tt += t * t;
    }
    return st / std::sqrt(ss * tt);
  };
  EXPECT_GT(correlation(scores_of(*blr)), 0.8);
  EXPECT_GT(correlation(scores_of(*blr)), 1.5 * correlation(scores_of(*bls)));
}

TEST(Reconstruction, CannotUseALossThatIsNotPositive) {
  for (const char* name : {"reconstruction", "batch-loss-mean"}) {
    const auto scorer = make_scorer({name}, 2);
    const std::vector<std::uint32_t> batch = {0};
    EXPECT_FALSE(scorer->observe({.indices = batch, .mean_loss = 0.0}));
    EXPECT_FALSE(scorer->observe({.indices = batch, .mean_loss = -1.0}));
    EXPECT_TRUE(std::isnan(scores_of(*scorer)[0]));
  }
}

TEST(Given, KeepsTheFirstValueForGood) {
  for (const char* name : {"el2n", "grand", "influence", "forgetting"}) {
    const auto scorer = make_scorer({name}, 3);
    observe(*scorer, {0, 2}, std::vector<float>{1.5F, 0.5F});
    observe(*scorer, {0, 1, 2}, std::vector<float>{9.0F, 2.5F, 9.0F});
    EXPECT_EQ(scores_of(*scorer), (std::vector<float>{1.5F, 2.5F, 0.5F})) << name;
  }
}

// What every registered score must do.
class ScorerConformance : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Scorer> make(std::size_t n) const { return make_scorer({GetParam()}, n); }
};

TEST_P(ScorerConformance, HasACompleteSpecThatMakesItAgain) {
  const auto scorer = make(5);
  EXPECT_EQ(scorer->spec().name, GetParam());
  EXPECT_EQ(scorer->spec().options.size(), find_scorer(GetParam()).options.size());
  EXPECT_EQ(make_scorer(scorer->spec(), 5)->num_samples(), 5U);
}

TEST_P(ScorerConformance, ChangesOnlyTheObservedSamples) {
  const auto scorer = make(6);
  observe(*scorer, {1, 3}, std::vector<float>{2.0F, 4.0F});
  const auto before = scores_of(*scorer);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(before[i]), i != 1 && i != 3);
  observe(*scorer, {4}, std::vector<float>{3.0F});
  const auto after = scores_of(*scorer);
  for (const std::size_t i : {0U, 2U, 5U}) EXPECT_TRUE(std::isnan(after[i]));
  // BLR's scores share a global factor; their ratio stays.
  EXPECT_FLOAT_EQ(after[1] * before[3], after[3] * before[1]);
}

TEST_P(ScorerConformance, AppliesARepeatedIndexOnce) {
  const auto repeated = make(4);
  const auto single = make(4);
  // The same mean and, sample by sample, the same losses.
  observe(*repeated, {0, 1}, std::vector<float>{1.0F, 1.0F});
  observe(*single, {0, 1}, std::vector<float>{1.0F, 1.0F});
  observe(*repeated, {2, 2}, std::vector<float>{3.0F, 3.0F});
  observe(*single, {2}, std::vector<float>{3.0F});
  observe(*repeated, {2, 2, 2}, std::vector<float>{5.0F, 5.0F, 5.0F});
  observe(*single, {2}, std::vector<float>{5.0F});
  EXPECT_EQ(scores_of(*repeated)[2], scores_of(*single)[2]);
}

TEST_P(ScorerConformance, StateIsCompleteInItsArraysAndNumbers) {
  const auto original = make(20);
  std::mt19937_64 random(3);
  const auto step = [&](Scorer& scorer, std::uint64_t seed) {
    std::mt19937_64 local(seed);
    const std::vector<std::uint32_t> batch = {static_cast<std::uint32_t>(local() % 20),
                                              static_cast<std::uint32_t>(local() % 20)};
    observe(scorer, batch, std::vector<float>{static_cast<float>(local() % 9 + 1), 2.0F});
  };
  for (int k = 0; k < 30; ++k) step(*original, random());
  const auto copy = make(20);
  const auto from = original->arrays();
  const auto to = copy->arrays();
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t a = 0; a < from.size(); ++a) {
    ASSERT_EQ(from[a].bytes.size(), to[a].bytes.size());
    std::copy(from[a].bytes.begin(), from[a].bytes.end(), to[a].bytes.begin());
  }
  copy->set_numbers(original->numbers());
  for (int k = 0; k < 30; ++k) {
    const auto seed = random();
    step(*original, seed);
    step(*copy, seed);
  }
  const auto a = scores_of(*original);
  const auto b = scores_of(*copy);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])));
  }
}

TEST_P(ScorerConformance, RefusesOptionsItDoesNotHave) {
  EXPECT_THROW(make_scorer({GetParam(), {{"no_such_option", 1.0}}}, 3), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Registered, ScorerConformance,
                         testing::ValuesIn(test::names_of(registered_scorers())), test::test_name);

TEST(Registry, SaysWhichNamesExist) {
  try {
    make_scorer({"no-such-score"}, 3);
    FAIL();
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("batch-loss, last-batch-loss, sample-loss"), std::string::npos);
    EXPECT_NE(message.find("no-such-score"), std::string::npos);
  }
}

TEST(Registry, RefusesEveryOptionOutOfRange) {
  const std::vector<Spec> bad = {
      {"batch-loss", {{"alpha", -0.1}}},     {"batch-loss", {{"alpha", 1.0}}},
      {"batch-loss", {{"alpha", NAN}}},      {"batch-loss", {{"initial_score", INFINITY}}},
      {"loss-average", {{"decay", 0.0}}},    {"loss-average", {{"decay", 1.1}}},
      {"loss-ucb", {{"decay", 0.0}}},        {"loss-ucb", {{"confidence", -1.0}}},
      {"reconstruction", {{"step", 0.0}}},   {"reconstruction", {{"step", 1.5}}},
      {"output-gradient", {{"power", 0.0}}}, {"output-gradient", {{"power", 10.5}}},
      {"output-gradient", {{"power", NAN}}}, {"output-gradient", {{"alpha", 1.0}}},
      {"output-gradient", {{"alpha", -0.1}}}};
  for (const Spec& spec : bad) {
    try {
      make_scorer(spec, 3);
      ADD_FAILURE() << spec.name << " " << spec.options.begin()->first;
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(spec.options.begin()->first), std::string::npos) << message;
      EXPECT_NE(message.find("must be"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace tamis
