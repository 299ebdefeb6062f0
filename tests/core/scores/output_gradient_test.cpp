// The mean loss of a batch, shared out by the norms of its output gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/random_input.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> scores_of(const Scorer& scorer) {
  Array<float> scratch;
  const auto scores = scorer.scores(scratch);
  return {scores.begin(), scores.end()};
}

// The scores of samples 0, 1, ... of one batch.
std::vector<float> share_out(double mean_loss, const std::vector<float>& norms,
                             const OptionMap& options = {}) {
  const auto scorer = make_scorer({"output-gradient", options}, norms.size());
  const auto indices = test::iota_indices<std::uint32_t>(norms.size());
  EXPECT_TRUE(scorer->observe({.indices = indices, .mean_loss = mean_loss, .norms = norms}));
  return scores_of(*scorer);
}

std::vector<float> random_norms(std::mt19937_64& random, std::size_t count) {
  std::lognormal_distribution<float> draw(0.0F, 1.0F);
  std::vector<float> norms(count);
  for (float& norm : norms) norm = draw(random);
  return norms;
}

TEST(OutputGradient, SharesTheMeanLossOutInProportionToTheNorms) {
  EXPECT_EQ(share_out(2.0, {1.0F, 2.0F, 3.0F}), (std::vector<float>{1.0F, 2.0F, 3.0F}));
  EXPECT_EQ(share_out(2.0, {0.0F, 1.0F}), (std::vector<float>{0.0F, 4.0F}));
  EXPECT_EQ(share_out(6.0, {1.0F, 2.0F, 4.0F}, {{"power", 2.0}}),
            (std::vector<float>{18.0F / 21.0F, 4.0F * 18.0F / 21.0F, 16.0F * 18.0F / 21.0F}));
  EXPECT_EQ(share_out(1.0, {4.0F, 16.0F}, {{"power", 0.5}}),
            (std::vector<float>{2.0F / 3.0F, 4.0F / 3.0F}));
}

TEST(OutputGradient, RecoversSquaredErrorsExactlyWithPowerTwo) {
  // l = |e|^2 / 2, so the gradient by the output is e / B.
  std::mt19937_64 random(1);
  const std::vector<float> errors = random_norms(random, 64);
  std::vector<float> norms;
  double mean = 0.0;
  for (const float error : errors) {
    norms.push_back(error / 64.0F);
    mean += 0.5 * static_cast<double>(error) * static_cast<double>(error) / 64.0;
  }
  const auto scores = share_out(mean, norms, {{"power", 2.0}});
  for (std::size_t k = 0; k < errors.size(); ++k) {
    const double loss = 0.5 * static_cast<double>(errors[k]) * static_cast<double>(errors[k]);
    EXPECT_NEAR(scores[k], loss, 1e-6 * loss);
  }
}

// Probabilities of the labels, from sure to wrong, and the losses of such a batch.
std::vector<double> random_probabilities(std::mt19937_64& random, std::size_t count) {
  std::normal_distribution<double> logit(1.0, 3.0);
  std::vector<double> probabilities(count);
  for (double& p : probabilities) p = 1.0 / (1.0 + std::exp(-logit(random)));
  return probabilities;
}

TEST(OutputGradient, RecoversCrossEntropiesExactlyWhateverMultipliesTheGradients) {
  std::mt19937_64 random(4);
  for (const std::size_t count : {1U, 2U, 32U, 512U}) {
    for (const double scale : {1e-20, 1.0 / 128.0, 65536.0}) {
      const auto probabilities = random_probabilities(random, count);
      std::vector<float> norms;
      double mean = 0.0;
      for (const double p : probabilities) {
        norms.push_back(static_cast<float>(2.0 * (1.0 - p) * scale));
        mean -= std::log(p) / static_cast<double>(count);
      }
      const auto scores = share_out(mean, norms, {{"cross_entropy", 1.0}});
      for (std::size_t k = 0; k < count; ++k) {
        // As exact as 32-bit norms allow: they say 1 - p up to 6e-8 of it.
        const double loss = -std::log(probabilities[k]);
        EXPECT_NEAR(scores[k], loss, 1e-5 * loss + 1e-6 / probabilities[k]) << count;
      }
    }
  }
}

TEST(OutputGradient, SharesOfACrossEntropyAddUpAndKeepTheOrderWhateverTheNorms) {
  std::mt19937_64 random(5);
  for (const std::size_t count : {1U, 2U, 31U, 512U}) {
    for (const double loss : {1e-6, 0.03, 0.3}) {
      const std::vector<float> norms = random_norms(random, count);
      const auto scores = share_out(loss, norms, {{"cross_entropy", 1.0}});
      double sum = 0.0;
      for (std::size_t k = 0; k < count; ++k) {
        sum += static_cast<double>(scores[k]);
        if (k > 0 && norms[k - 1] <= norms[k]) {
          EXPECT_LE(scores[k - 1], scores[k]);
        }
      }
      EXPECT_NEAR(sum / static_cast<double>(count), loss, 1e-5 * loss);
    }
  }
}

TEST(OutputGradient, SkipsCrossEntropiesThatCannotBe) {
  const auto scorer = make_scorer({"output-gradient", {{"cross_entropy", 1.0}}}, 2);
  const auto indices = test::iota_indices<std::uint32_t>(2);
  const std::vector<float> norms = {1.0F, 2.0F};
  for (const double loss : {0.0, -1.0, 1e30}) {
    EXPECT_FALSE(scorer->observe({.indices = indices, .mean_loss = loss, .norms = norms})) << loss;
  }
  EXPECT_TRUE(std::isnan(scores_of(*scorer)[0]));
}

TEST(OutputGradient, OfACrossEntropyTakesNormsOfOrderOneAndNoPower) {
  EXPECT_EQ(make_scorer({"output-gradient"}, 2)->norm_order(), 2);
  EXPECT_EQ(make_scorer({"output-gradient", {{"cross_entropy", 1.0}}}, 2)->norm_order(), 1);
  EXPECT_THAT(
      [] {
        make_scorer({"output-gradient", {{"cross_entropy", 1.0}, {"power", 2.0}}}, 2);
      },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("power must be left at 1 with cross_entropy=1")));
}

TEST(OutputGradient, SharesAddUpToTheLossAndKeepTheOrderOfTheNorms) {
  std::mt19937_64 random(2);
  for (const double power : {0.3, 1.0, 2.0, 7.5}) {
    for (const std::size_t count : {1U, 2U, 31U, 512U}) {
      const std::vector<float> norms = random_norms(random, count);
      const double loss = std::uniform_real_distribution(0.01, 10.0)(random);
      const auto scores = share_out(loss, norms, {{"power", power}});
      double sum = 0.0;
      for (const float score : scores) sum += static_cast<double>(score);
      EXPECT_NEAR(sum / static_cast<double>(count), loss, 1e-6 * loss);
      for (std::size_t k = 1; k < count; ++k) {
        if (norms[k - 1] <= norms[k]) {
          EXPECT_LE(scores[k - 1], scores[k]);
        } else {
          EXPECT_GE(scores[k - 1], scores[k]);
        }
      }
    }
  }
}

// Loss scaling of mixed precision, accumulation and token counts multiply all norms.
TEST(OutputGradient, DoesNotDependOnWhatMultipliesAllNorms) {
  std::mt19937_64 random(3);
  const std::vector<float> norms = random_norms(random, 40);
  for (const double power : {1.0, 2.0, 3.5}) {
    const auto plain = share_out(1.5, norms, {{"power", power}});
    for (const float scale : {0x1p-100F, 0x1p-20F, 0x1p16F, 0x1p100F}) {
      std::vector<float> scaled = norms;
      for (float& norm : scaled) norm *= scale;
      EXPECT_EQ(share_out(1.5, scaled, {{"power", power}}), plain) << scale;
    }
  }
}

TEST(OutputGradient, TakesNormsFromOneEndOfFloatToTheOther) {
  const float least = std::numeric_limits<float>::denorm_min();
  const float greatest = std::numeric_limits<float>::max();
  for (const double power : {1.0, 2.0, 10.0}) {
    const auto scores = share_out(3.0, {least, greatest, 0.0F}, {{"power", power}});
    EXPECT_NEAR(scores[0], 0.0, 1e-30);
    EXPECT_EQ(scores[1], 9.0F);
    EXPECT_EQ(scores[2], 0.0F);
    EXPECT_EQ(share_out(3.0, {least, least}, {{"power", power}}), (std::vector<float>{3.0F, 3.0F}));
  }
}

TEST(OutputGradient, AveragesOverVisitsFromTheFirstOneOn) {
  const auto scorer = make_scorer({"output-gradient", {{"alpha", 0.75}}}, 2);
  const std::vector<std::uint32_t> batch = {0, 1};
  const std::vector<float> first = {1.0F, 3.0F};
  const std::vector<float> second = {3.0F, 1.0F};
  ASSERT_TRUE(scorer->observe({.indices = batch, .mean_loss = 2.0, .norms = first}));
  EXPECT_EQ(scores_of(*scorer), (std::vector<float>{1.0F, 3.0F}));
  ASSERT_TRUE(scorer->observe({.indices = batch, .mean_loss = 2.0, .norms = second}));
  EXPECT_EQ(scores_of(*scorer), (std::vector<float>{1.5F, 2.5F}));
}

TEST(OutputGradient, LeavesOutRowsThatFillUpButCountsThemInTheMean) {
  const auto scorer = make_scorer({"output-gradient"}, 3);
  const std::vector<std::uint32_t> scored = {2, 0};
  const std::vector<float> norms = {1.0F, 2.0F, 3.0F};  // the last row fills up
  ASSERT_TRUE(scorer->observe({.indices = scored, .mean_loss = 4.0, .norms = norms}));
  const auto scores = scores_of(*scorer);
  EXPECT_EQ(scores[2], 2.0F);
  EXPECT_EQ(scores[0], 4.0F);
  EXPECT_TRUE(std::isnan(scores[1]));
}

TEST(OutputGradient, SkipsNormsThatSayNothing) {
  const std::vector<std::uint32_t> batch = {0, 1};
  const std::vector<std::vector<float>> bad = {
      {0.0F, 0.0F}, {kNan, 1.0F}, {1.0F, kInfinity}, {1.0F, -1.0F}, {-0.5F, -0.5F}};
  const auto scorer = make_scorer({"output-gradient"}, 2);
  for (const std::vector<float>& norms : bad) {
    EXPECT_FALSE(scorer->observe({.indices = batch, .mean_loss = 1.0, .norms = norms}));
  }
  // The share of the first would be twice the largest float.
  const std::vector<float> one_sided = {1.0F, 0.0F};
  EXPECT_FALSE(scorer->observe({.indices = batch, .mean_loss = 3e38, .norms = one_sided}));
  for (const float score : scores_of(*scorer)) EXPECT_TRUE(std::isnan(score));
}

PrunerOptions options_with(const std::string& score) {
  return {.num_samples = 10, .num_epochs = 3, .score = Spec{score}};
}

TEST(Norms, AreSkippedAndCountedByThePruner) {
  Pruner pruner(options_with("output-gradient"));
  const std::vector<SampleIndex> batch = {3, 5};
  EXPECT_FALSE(pruner.observe(batch, 1.0, std::vector<float>{kNan, 1.0F}));
  EXPECT_FALSE(pruner.observe(batch, 1.0, std::vector<float>{0.0F, 0.0F}));
  EXPECT_FALSE(pruner.observe(batch, std::nan(""), std::vector<float>{1.0F, 1.0F}));
  EXPECT_FALSE(
      pruner.observe(batch, std::vector<float>{kInfinity, 1.0F}, std::vector<float>{1.0F, 1.0F}));
  EXPECT_EQ(pruner.num_skipped_observations(), 4U);
  EXPECT_EQ(pruner.num_scored(), 0U);
  EXPECT_TRUE(pruner.observe(batch, 1.0, std::vector<float>{1.0F, 3.0F}));
  EXPECT_EQ(pruner.num_observations(), 1U);
  EXPECT_EQ(pruner.scores()[5], 1.5F);
}

TEST(Norms, ComeWithTheMeanLossOrWithLosses) {
  const std::vector<float> losses = {1.0F, 2.0F, 6.0F};
  const std::vector<float> norms = {2.0F, 1.0F, 3.0F};
  Pruner with_mean(options_with("output-gradient"));
  Pruner with_losses(options_with("output-gradient"));
  Pruner by_sample(options_with("output-gradient"));
  const EpochPlan& plan = with_mean.start_epoch(0);
  with_losses.start_epoch(0);
  by_sample.start_epoch(0);
  const std::vector<std::uint32_t> batch(plan.order().begin() + 2, plan.order().begin() + 5);
  EXPECT_TRUE(with_mean.observe(2, 3.0, norms));
  EXPECT_TRUE(with_losses.observe(2, losses, norms));
  EXPECT_TRUE(by_sample.observe(batch, 3.0, norms));
  EXPECT_EQ(with_mean.serialize(), with_losses.serialize());
  EXPECT_EQ(with_mean.serialize(), by_sample.serialize());
  EXPECT_EQ(with_mean.scores()[batch[2]], 4.5F);
}

// A loop that watches its outputs can use any score.
TEST(Norms, AreLeftAsideByOtherScores) {
  const std::vector<float> losses = {1.0F, 2.0F, 6.0F};
  const std::vector<float> norms = {2.0F, kNan, -3.0F};
  for (const ScorerInfo& info : registered_scorers()) {
    if (info.name == "output-gradient") continue;
    Pruner plain(options_with(std::string(info.name)));
    Pruner watched(options_with(std::string(info.name)));
    plain.start_epoch(0);
    watched.start_epoch(0);
    EXPECT_TRUE(plain.observe(2, losses));
    EXPECT_TRUE(watched.observe(2, losses, norms));
    if (plain.scorer().needs() != LossKind::sample_losses) {
      EXPECT_TRUE(plain.observe(5, 3, 2.5));
      EXPECT_TRUE(watched.observe(5, 2.5, norms));
    }
    EXPECT_EQ(plain.serialize(), watched.serialize()) << info.name;
  }
}

TEST(Norms, ThatAScoreNeedsAreAskedForWithTheCure) {
  Pruner ogs(options_with("output-gradient"));
  ogs.start_epoch(0);
  const auto refuses = [&](const std::function<void()>& call, const std::string& message) {
    EXPECT_THAT(call, ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  const std::string missing =
      "score output-gradient needs the norm of the output gradient of each of the 4 samples "
      "besides the loss, got none; watch the model's outputs, or use batch-loss";
  refuses([&] { ogs.observe(0, 4, 1.0); }, missing);
  refuses([&] { ogs.observe(0, std::vector<float>(4, 1.0F)); }, missing);
  refuses([&] { ogs.check_observation(4, LossKind::mean_loss); }, missing);
  refuses([&] { ogs.check_observation(4, LossKind::sample_losses); }, missing);
  EXPECT_NO_THROW(ogs.check_observation(4, LossKind::output_gradients));
  refuses([&] { ogs.observe(0, 1.0, std::vector<float>{}); }, "at least one sample, got 0");
  refuses(
      [&] {
        ogs.observe(std::vector<SampleIndex>{1, 2}, 1.0, std::vector<float>(3, 1.0F));
      },
      "norms must be as many as samples (2), got 3");
  refuses([&] { ogs.observe(0, std::vector<float>(3, 1.0F), std::vector<float>(2, 1.0F)); },
          "norms must be as many as samples (3), got 2");
  EXPECT_THROW(ogs.observe(8, 1.0, std::vector<float>(3, 1.0F)), std::out_of_range);

  Pruner own(options_with("sample-loss"));
  own.start_epoch(0);
  refuses([&] { own.observe(0, 1.0, std::vector<float>(4, 1.0F)); },
          "score sample-loss needs one loss per sample, got the mean of 4 and the norms of their "
          "output gradients; output-gradient works with these");
}

}  // namespace
}  // namespace tamis
