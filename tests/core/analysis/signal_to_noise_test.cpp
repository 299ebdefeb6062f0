#include "tamis/analysis/signal_to_noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numbers>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "tamis/analysis/statistics.h"

namespace tamis::analysis {
namespace {

const std::vector<double> kAlphas = {0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95};

// Visits with batch size 2: signal = own(k), noise = 5 + white noise of deviation `sigma`.
std::vector<Visit> visits_with_white_noise(std::size_t count, double sigma, std::uint64_t seed,
                                           const std::function<double(double)>& own) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(5.0, sigma);
  std::vector<Visit> visits(count);
  for (std::size_t k = 0; k < count; ++k) {
    const double signal = own(static_cast<double>(k));
    visits[k] = {
        .batch_loss = signal + normal(engine), .sample_loss = 2.0 * signal, .batch_size = 2};
  }
  return visits;
}

// |H(f)|^2 (1+a)/(1-a): what the filter does to the ratio of a sine and white noise.
double gain_in_ratio(double alpha, double frequency) {
  const double w = 2.0 * std::numbers::pi * frequency;
  return (1.0 - alpha * alpha) / (1.0 - 2.0 * alpha * std::cos(w) + alpha * alpha);
}

// A sine of frequency f and amplitude A in white noise: before A^2 / (2 sigma^2), after that times
// |H(f)|^2 (1+a)/(1-a). 2 * 10^5 visits: below 1.5 % standard error at a = 0.95, so a false alarm
// needs more than 5 standard errors.
TEST(SignalToNoiseCurve, MeasuresWhatTheFilterDoesToASineInWhiteNoise) {
  const double frequency = 0.02;
  SignalToNoiseCurve curve(kAlphas);
  curve.add(visits_with_white_noise(200'000, 2.0, 1, [&](double k) {
    return 1.0 + 0.5 * std::sin(2.0 * std::numbers::pi * frequency * k);
  }));
  const double before = 0.5 * 0.25 / 4.0;
  EXPECT_NEAR(curve.before().over_visits, before, 0.08 * before);
  for (const SignalToNoise& after : curve.after()) {
    const double expected = before * gain_in_ratio(after.alpha, frequency);
    EXPECT_NEAR(after.over_visits, expected, 0.08 * expected) << "alpha " << after.alpha;
  }
}

// The optimum of |H(f)|^2 (1+a)/(1-a) = (1-a^2) / (1 - 2a cos w + a^2) lies at
// cos w = 2a / (1 + a^2): a sine at the w of a = 0.7 asks for 0.7.
TEST(SignalToNoiseCurve, FindsTheAlphaThatASineAsksFor) {
  const double w = std::acos(1.4 / 1.49);
  SignalToNoiseCurve curve(kAlphas);
  curve.add(visits_with_white_noise(200'000, 1.0, 2, [&](double k) { return std::sin(w * k); }));
  EXPECT_EQ(best_alpha(curve.after(), &SignalToNoise::over_visits), 0.7);
}

// Every sample has its own constant loss, so the variance between samples stays and the noise falls
// to (1-a)/(1+a). 5,000 samples: standard error of the ratio 2.8 %; a false alarm needs 5 of them.
TEST(SignalToNoiseCurve, SeesPersistentSamplesBetterTheLongerTheMemory) {
  SignalToNoiseCurve curve(kAlphas);
  std::mt19937_64 engine(3);
  std::normal_distribution<double> normal;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    const double own = normal(engine);
    curve.add(visits_with_white_noise(150, 3.0, 1000 + i, [own](double) { return own; }));
  }
  EXPECT_EQ(curve.num_samples(), 5'000U);
  for (const SignalToNoise& after : curve.after()) {
    const double expected = 1.0 / 9.0 * gain_in_ratio(after.alpha, 0.0);
    EXPECT_NEAR(after.between_samples, expected, 0.14 * expected) << "alpha " << after.alpha;
  }
  EXPECT_EQ(best_alpha(curve.after(), &SignalToNoise::between_samples), 0.95);
}

TEST(SignalToNoiseCurve, AgreesWithTheDecompositionAtAlphaZero) {
  const std::vector<Visit> visits =
      visits_with_white_noise(50, 1.0, 4, [](double k) { return std::exp(-0.1 * k); });
  SignalToNoiseCurve curve(kAlphas);
  curve.add(visits);
  const auto [signal, noise] = split_visits(visits);
  EXPECT_NEAR(curve.before().over_visits,
              std::pow(standard_deviation(signal) / standard_deviation(noise), 2), 1e-13);
  EXPECT_EQ(curve.before().over_visits, curve.after()[0].over_visits);
  EXPECT_TRUE(std::isnan(curve.before().between_samples));
}

TEST(SignalToNoiseCurve, DoesNotDependOnTheLevelOfTheLosses) {
  std::vector<Visit> visits =
      visits_with_white_noise(20, 1.0, 5, [](double k) { return std::cos(k); });
  SignalToNoiseCurve low(kAlphas);
  low.add(visits);
  for (Visit& visit : visits) {
    visit.batch_loss += 1000.0;
    visit.sample_loss += 500.0;
  }
  SignalToNoiseCurve high(kAlphas);
  high.add(visits);
  for (std::size_t i = 0; i < kAlphas.size(); ++i) {
    EXPECT_NEAR(high.after()[i].over_visits, low.after()[i].over_visits, 1e-9);
  }
}

// Two samples with equal signal levels, seen 1 and 100 times: only weights that sum to 1 make them
// equal.
TEST(SignalToNoiseCurve, ComparesSamplesWithDifferentNumbersOfVisits) {
  const Visit visit{.batch_loss = 3.0, .sample_loss = 2.0, .batch_size = 2};
  const Visit other{.batch_loss = 4.0, .sample_loss = 2.0, .batch_size = 2};
  SignalToNoiseCurve curve(kAlphas);
  curve.add(std::vector<Visit>(1, visit));
  curve.add(std::vector<Visit>(100, other));
  for (const SignalToNoise& after : curve.after()) EXPECT_NEAR(after.between_samples, 0.0, 1e-28);
}

TEST(SignalToNoiseCurve, ChangesNothingForAnEmptyOrUnusableSample) {
  SignalToNoiseCurve curve(kAlphas);
  EXPECT_TRUE(std::isnan(curve.before().over_visits));
  curve.add(std::vector<Visit>{{1.0, 0.5, 2}, {2.0, 0.25, 2}});
  const double before = curve.before().over_visits;
  curve.add({});
  EXPECT_THROW(curve.add(std::vector<Visit>{{1.0, 0.5, 2}, {std::nan(""), 0.25, 2}}),
               std::invalid_argument);
  EXPECT_EQ(curve.num_samples(), 1U);
  EXPECT_EQ(curve.before().over_visits, before);
  EXPECT_THROW(SignalToNoiseCurve(std::vector<double>{0.5, 1.0}), std::invalid_argument);
}

TEST(BestAlpha, IgnoresNaNAndPrefersTheSmallerOfEquals) {
  const std::vector<SignalToNoise> ratios = {{.alpha = 0.9, .over_visits = 2.0},
                                             {.alpha = 0.5, .over_visits = 2.0},
                                             {.alpha = 0.1, .over_visits = std::nan("")},
                                             {.alpha = 0.3, .over_visits = 1.0}};
  EXPECT_EQ(best_alpha(ratios, &SignalToNoise::over_visits), 0.5);
  EXPECT_EQ(best_alpha(std::span(ratios).subspan(2, 1), &SignalToNoise::over_visits), std::nullopt);
}

}  // namespace
}  // namespace tamis::analysis
