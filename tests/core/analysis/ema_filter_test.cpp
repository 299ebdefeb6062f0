#include "tamis/analysis/ema_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <numbers>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

namespace tamis::analysis {
namespace {

const std::vector<double> kAlphas = {0.0, 0.05, 0.17, 0.1716, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99, 0.999};

TEST(EmaFilter, AnswersAnImpulseWithItsImpulseResponse) {
  std::vector<double> impulse(200, 0.0);
  impulse[0] = 1.0;
  for (const double alpha : kAlphas) {
    const EmaFilter filter(alpha);
    const std::vector<double> expected = filter.impulse_response(impulse.size());
    const std::vector<double> output = filter.apply(impulse);
    for (std::size_t n = 0; n < impulse.size(); ++n) {
      EXPECT_NEAR(output[n], expected[n], 1e-12 * (1.0 - alpha));
    }
  }
  EXPECT_EQ(EmaFilter(0.5).impulse_response(4), (std::vector<double>{0.5, 0.25, 0.125, 0.0625}));
  EXPECT_EQ(EmaFilter(0.0).impulse_response(3), (std::vector<double>{1.0, 0.0, 0.0}));
}

// In long double: the formula as written cancels near w = 0 when alpha is near 1.
TEST(EmaFilter, HasTheGainOfItsFormula) {
  for (const double alpha : kAlphas) {
    const long double a = alpha;
    for (int step = 0; step <= 100; ++step) {
      const double frequency = 0.005 * step;
      const long double w = 2.0L * std::numbers::pi_v<long double> * frequency;
      const long double formula = (1.0L - a) / std::sqrt(1.0L - 2.0L * a * std::cos(w) + a * a);
      EXPECT_NEAR(EmaFilter(alpha).gain(frequency), static_cast<double>(formula), 1e-12);
    }
  }
}

TEST(EmaFilter, HasTheComplexResponseOfItsFormula) {
  for (const double alpha : kAlphas) {
    const EmaFilter filter(alpha);
    for (int step = -60; step <= 60; ++step) {
      const double frequency = 0.01 * step;
      const std::complex<double> formula =
          (1.0 - alpha) / (1.0 - alpha * std::polar(1.0, -2.0 * std::numbers::pi * frequency));
      EXPECT_NEAR(std::abs(filter.response(frequency) - formula), 0.0, 1e-12);
      EXPECT_NEAR(std::abs(filter.response(frequency)), filter.gain(frequency), 1e-14);
    }
  }
}

TEST(EmaFilter, FallsFromOneToItsSmallestGainAtTheHighestFrequency) {
  for (const double alpha : kAlphas) {
    const EmaFilter filter(alpha);
    EXPECT_EQ(filter.gain(0.0), 1.0);
    EXPECT_NEAR(filter.gain(0.5), (1.0 - alpha) / (1.0 + alpha), 1e-15);
    for (int step = 1; step <= 100 && alpha > 0.0; ++step) {
      EXPECT_LT(filter.gain(0.005 * step), filter.gain(0.005 * (step - 1)));
    }
  }
}

TEST(EmaFilter, RepeatsItsGainWithEveryWholeCycle) {
  const EmaFilter filter(0.7);
  EXPECT_NEAR(filter.gain(0.1 + 1e6), filter.gain(0.1), 1e-9);
  EXPECT_NEAR(filter.gain(0.9), filter.gain(0.1), 1e-15);
}

// The amplitude and the phase of a sine that has passed the filter, once the start has died away.
TEST(EmaFilter, DoesToASineWhatItsResponseSays) {
  for (const double alpha : {0.1, 0.5, 0.7, 0.9}) {
    for (const double frequency : {0.01, 0.0625, 0.2, 0.5}) {
      std::vector<double> wave(1000);
      for (std::size_t k = 0; k < wave.size(); ++k) {
        wave[k] = std::cos(2.0 * std::numbers::pi * frequency * static_cast<double>(k));
      }
      const EmaFilter filter(alpha);
      const std::vector<double> output = filter.apply(wave);
      for (std::size_t k = 500; k < wave.size(); ++k) {
        const std::complex<double> phasor =
            std::polar(1.0, 2.0 * std::numbers::pi * frequency * static_cast<double>(k));
        EXPECT_NEAR(output[k], (filter.response(frequency) * phasor).real(), 1e-12);
      }
    }
  }
}

TEST(EmaFilter, LeavesHalfThePowerAtItsCutoff) {
  for (const double alpha : kAlphas) {
    const EmaFilter filter(alpha);
    const std::optional<double> cutoff = filter.cutoff();
    if (alpha < 3.0 - 2.0 * std::numbers::sqrt2) {
      EXPECT_FALSE(cutoff.has_value());
      EXPECT_GT(filter.gain(0.5), std::numbers::sqrt2 / 2.0);
    } else {
      ASSERT_TRUE(cutoff.has_value());
      EXPECT_GT(*cutoff, 0.0);
      EXPECT_LE(*cutoff, 0.5);
      EXPECT_NEAR(filter.gain(*cutoff), std::numbers::sqrt2 / 2.0, 1e-12);
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

TEST(EmaFilter, HasTheNoiseVarianceFactorOfItsImpulseResponse) {
  for (const double alpha : kAlphas) {
    double sum_of_squares = 0.0;
    for (const double h : EmaFilter(alpha).impulse_response(20'000)) sum_of_squares += h * h;
    EXPECT_NEAR(EmaFilter(alpha).noise_variance_factor(), sum_of_squares, 1e-12);
    EXPECT_NEAR(EmaFilter(alpha).noise_variance_factor(), (1.0 - alpha) / (1.0 + alpha), 1e-15);
  }
}

// 10^6 values: the standard error of a variance is at most sqrt(2 (1+a^2) / (1-a^2) / 10^6) of it,
// below 0.5 % for a = 0.8; a false alarm needs 6 standard errors.
TEST(EmaFilter, LeavesItsFactorOfTheVarianceOfWhiteNoise) {
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal;
  std::vector<double> noise(1'000'000);
  for (double& value : noise) value = normal(engine);
  for (const double alpha : {0.0, 0.3, 0.7, 0.8}) {
    const EmaFilter filter(alpha);
    double power = 0.0;
    for (const double value : filter.apply(noise)) power += value * value;
    EXPECT_NEAR(power / 1e6, filter.noise_variance_factor(), 0.03 * filter.noise_variance_factor());
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
  EXPECT_THROW(EmaFilter(0.7).gain(std::numeric_limits<double>::infinity()), std::invalid_argument);
}

}  // namespace
}  // namespace tamis::analysis
