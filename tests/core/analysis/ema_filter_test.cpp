#include "tamis/analysis/ema_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

namespace tamis::analysis {
namespace {

const std::vector<double> kAlphas = {0.0, 0.05, 0.17, 0.1716, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99, 0.999};

// h[n] = (1-a) a^n.
TEST(EmaFilter, AnswersAnImpulseWithFallingPowersOfAlpha) {
  std::vector<double> impulse(200, 0.0);
  impulse[0] = 1.0;
  for (const double alpha : kAlphas) {
    const std::vector<double> output = EmaFilter(alpha).apply(impulse);
    for (std::size_t n = 0; n < impulse.size(); ++n) {
      const double expected = (1.0 - alpha) * std::pow(alpha, static_cast<double>(n));
      EXPECT_NEAR(output[n], expected, 1e-12 * (1.0 - alpha));
    }
  }
}

// H = (1-a) / (1 - a e^{-jw}).
std::complex<double> response(double alpha, double frequency) {
  return (1.0 - alpha) / (1.0 - alpha * std::polar(1.0, -2.0 * std::numbers::pi * frequency));
}

double gain(double alpha, double frequency) { return std::abs(response(alpha, frequency)); }

// The amplitude and the phase of a sine that has passed the filter, once the start has died away.
TEST(EmaFilter, DoesToASineWhatItsResponseSays) {
  for (const double alpha : {0.1, 0.5, 0.7, 0.9}) {
    for (const double frequency : {0.01, 0.0625, 0.2, 0.5}) {
      std::vector<double> wave(1000);
      for (std::size_t k = 0; k < wave.size(); ++k) {
        wave[k] = std::cos(2.0 * std::numbers::pi * frequency * static_cast<double>(k));
      }
      const std::vector<double> output = EmaFilter(alpha).apply(wave);
      for (std::size_t k = 500; k < wave.size(); ++k) {
        const std::complex<double> phasor =
            std::polar(1.0, 2.0 * std::numbers::pi * frequency * static_cast<double>(k));
        EXPECT_NEAR(output[k], (response(alpha, frequency) * phasor).real(), 1e-12);
      }
    }
  }
}

TEST(EmaFilter, LeavesHalfThePowerAtItsCutoff) {
  for (const double alpha : kAlphas) {
    const std::optional<double> cutoff = EmaFilter(alpha).cutoff();
    if (alpha < 3.0 - 2.0 * std::numbers::sqrt2) {
      EXPECT_FALSE(cutoff.has_value());
      EXPECT_GT(gain(alpha, 0.5), std::numbers::sqrt2 / 2.0);
    } else {
      ASSERT_TRUE(cutoff.has_value());
      EXPECT_GT(*cutoff, 0.0);
      EXPECT_LE(*cutoff, 0.5);
      EXPECT_NEAR(gain(alpha, *cutoff), std::numbers::sqrt2 / 2.0, 1e-10);
    }
  }
}

// cos w = 1 - (1-a)^2 / (2a): w = acos(1 - 0.09 / 1.4) for the paper's 0.7, pi / 3 for a = 0.5 +
// ... .
TEST(EmaFilter, HasTheCutoffOfAClosedForm) {
  EXPECT_NEAR(*EmaFilter(0.7).cutoff(), std::acos(1.0 - 0.09 / 1.4) / (2.0 * std::numbers::pi),
              1e-14);
  // (1-a)^2 = a has the root (3 - sqrt 5) / 2, where cos w = 1/2.
  EXPECT_NEAR(*EmaFilter((3.0 - std::sqrt(5.0)) / 2.0).cutoff(), 1.0 / 6.0, 1e-14);
}

// 10^6 values: the standard error of a variance is at most sqrt(2 (1+a^2) / (1-a^2) / 10^6) of it,
// below 0.5 % for a = 0.8; a false alarm needs 6 standard errors.
TEST(EmaFilter, LeavesItsShareOfTheVarianceOfWhiteNoise) {
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal;
  std::vector<double> noise(1'000'000);
  for (double& value : noise) value = normal(engine);
  for (const double alpha : {0.0, 0.3, 0.7, 0.8}) {
    const double share = (1.0 - alpha) / (1.0 + alpha);
    double power = 0.0;
    for (const double value : EmaFilter(alpha).apply(noise)) power += value * value;
    EXPECT_NEAR(power / 1e6, share, 0.03 * share);
  }
}

TEST(EmaFilter, StaysAtAConstantItStartsFrom) {
  for (const double value : EmaFilter(0.7).apply(std::vector<double>(100, 2.5), 2.5)) {
    EXPECT_NEAR(value, 2.5, 1e-14);
  }
  EXPECT_TRUE(EmaFilter(0.7).apply({}, 1.0).empty());
}

TEST(EmaFilter, RefusesAnAlphaThatIsNoAverage) {
  for (const double alpha : {-0.1, 1.0, 1.5, std::nan("")}) {
    EXPECT_THROW(EmaFilter{alpha}, std::invalid_argument);
  }
  try {
    EmaFilter filter(1.0);
    FAIL() << "alpha = 1 was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "EmaFilter: alpha must be in [0, 1), got 1");
  }
}

}  // namespace
}  // namespace tamis::analysis
