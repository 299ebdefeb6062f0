// Golden spectra were made with scipy.signal.welch; the rest is checked against the definition.
#include "tamis/analysis/welch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/golden.h"

namespace tamis::analysis {
namespace {

std::vector<double> white_noise(std::size_t length, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(2.0, 1.0);
  std::vector<double> series(length);
  for (double& value : series) value = normal(engine);
  return series;
}

// Straight from the definition: a plain Fourier sum in long double for every segment and bin.
std::vector<double> welch_by_definition(std::span<const double> series, std::size_t length) {
  const long double angle =
      2.0L * std::numbers::pi_v<long double> / static_cast<long double>(length);
  std::vector<long double> window(length, 1.0L);
  long double sum_of_squares = 0.0L;
  for (std::size_t i = 0; i < length; ++i) {
    if (length > 1) window[i] = 0.5L - 0.5L * std::cos(angle * static_cast<long double>(i));
    sum_of_squares += window[i] * window[i];
  }
  std::vector<long double> density(length / 2 + 1, 0.0L);
  std::size_t num_segments = 0;
  for (std::size_t begin = 0; begin + length <= series.size(); begin += length - length / 2) {
    long double mean = 0.0L;
    for (const double value : series.subspan(begin, length)) mean += value;
    mean /= static_cast<long double>(length);
    for (std::size_t k = 0; k < density.size(); ++k) {
      std::complex<long double> sum = 0.0L;
      for (std::size_t i = 0; i < length; ++i) {
        const auto turns = static_cast<long double>(k * i % length);
        sum += std::polar((series[begin + i] - mean) * window[i], -angle * turns);
      }
      density[k] += std::norm(sum) * (k > 0 && 2 * k < length ? 2.0L : 1.0L);
    }
    ++num_segments;
  }
  std::vector<double> result;
  for (const long double sum : density) {
    result.push_back(static_cast<double>(sum / sum_of_squares / num_segments));
  }
  return result;
}

Spectrum welch(std::span<const double> series, std::size_t segment_length) {
  return WelchPlan(segment_length).spectrum(series);
}

double total_power(const Spectrum& spectrum) {
  double sum = 0.0;
  for (const double density : spectrum.density) sum += density * spectrum.resolution;
  return sum;
}

double largest(std::span<const double> values) {
  double result = 0.0;
  for (const double value : values) result = std::max(result, value);
  return result;
}

TEST(Welch, AgreesWithScipyInEveryBinOfEveryGoldenSpectrum) {
  const nlohmann::json cases = test::load_golden("welch.json");
  ASSERT_EQ(cases.size(), 6U);
  for (const nlohmann::json& golden : cases) {
    const auto series = golden.at("x").get<std::vector<double>>();
    const auto frequencies = golden.at("frequencies").get<std::vector<double>>();
    const auto density = golden.at("psd").get<std::vector<double>>();
    ASSERT_EQ(golden.at("fs"), 1.0);
    const Spectrum spectrum = welch(series, golden.at("nperseg"));
    ASSERT_EQ(spectrum.density.size(), density.size());
    for (std::size_t k = 0; k < density.size(); ++k) {
      EXPECT_NEAR(spectrum.frequencies[k], frequencies[k], 1e-15);
      EXPECT_NEAR(spectrum.density[k], density[k], 1e-12 * density[k]) << "bin " << k;
    }
  }
}

TEST(Welch, EqualsItsDefinitionForEverySegmentLength) {
  const std::vector<double> series = white_noise(600, 1);
  std::vector<std::size_t> lengths = {97, 100, 127, 128, 129, 200, 251, 256, 599, 600};
  for (std::size_t length = 1; length <= 70; ++length) lengths.push_back(length);
  for (const std::size_t length : lengths) {
    const Spectrum spectrum = welch(series, length);
    const std::vector<double> expected = welch_by_definition(series, length);
    ASSERT_EQ(spectrum.density.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(spectrum.density[k], expected[k], 1e-13 * largest(expected))
          << "segment length " << length << ", bin " << k;
    }
  }
}

// Expected numbers: scipy.signal.welch(x, nperseg=len(x)).
TEST(Welch, TakesTheShortestSegmentsToo) {
  const Spectrum of_three = welch(std::vector<double>{1.0, 4.0, 2.0}, 3);
  ASSERT_EQ(of_three.density.size(), 2U);
  EXPECT_NEAR(of_three.frequencies[1], 1.0 / 3.0, 1e-15);
  EXPECT_NEAR(of_three.density[0], 8.0 / 9.0, 1e-14);
  EXPECT_NEAR(of_three.density[1], 31.0 / 9.0, 1e-14);

  const Spectrum of_two = welch(std::vector<double>{1.0, 4.0}, 2);
  EXPECT_EQ(of_two.frequencies, (std::vector<double>{0.0, 0.5}));
  EXPECT_NEAR(of_two.density[0], 2.25, 1e-15);
  EXPECT_NEAR(of_two.density[1], 2.25, 1e-15);

  const Spectrum of_one = welch(std::vector<double>{5.0}, 1);
  EXPECT_EQ(of_one.frequencies, std::vector<double>{0.0});
  EXPECT_EQ(of_one.density, std::vector<double>{0.0});
}

TEST(Welch, PutsASineIntoItsOwnBinWithHalfItsSquaredAmplitudeAsPower) {
  std::vector<double> series(640);
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i] = 7.0 + 3.0 * std::sin(2.0 * std::numbers::pi * 0.125 * static_cast<double>(i));
  }
  const Spectrum spectrum = welch(series, 64);
  EXPECT_EQ(largest(spectrum.density), spectrum.density[8]);
  EXPECT_NEAR(total_power(spectrum), 4.5, 1e-12);
  EXPECT_NEAR(spectrum.density[20], 0.0, 1e-20);
}

// The estimate's standard error is below 0.3 % here, so a false alarm needs 6 standard errors.
TEST(Welch, FindsTheVarianceOfWhiteNoiseAsTotalPower) {
  const Spectrum spectrum = welch(white_noise(400'000, 2), 256);
  EXPECT_NEAR(total_power(spectrum), 1.0, 0.02);
}

TEST(Welch, GivesAConstantNoPower) {
  const Spectrum spectrum = welch(std::vector<double>(300, 0.1), 100);
  EXPECT_LT(largest(spectrum.density), 1e-29);
}

TEST(Welch, IgnoresValuesPastTheLastFullSegment) {
  std::vector<double> series = white_noise(48, 3);
  const Spectrum before = welch(series, 16);
  for (int i = 0; i < 7; ++i) series.push_back(1e6);
  EXPECT_EQ(welch(series, 16).density, before.density);
  series.push_back(1e6);
  EXPECT_NE(welch(series, 16).density, before.density);
}

TEST(Welch, RefusesALengthAndSeriesItCannotUse) {
  EXPECT_THROW(WelchPlan(0), std::invalid_argument);
  EXPECT_THROW(welch({}, 1), std::invalid_argument);
  EXPECT_THROW(welch(std::vector<double>{1.0, 2.0, 3.0}, 4), std::invalid_argument);
  try {
    welch(std::vector<double>{1.0, std::numeric_limits<double>::infinity()}, 2);
    FAIL() << "an infinite value was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "Welch: series[1] must be a finite number, got inf");
  }
}

TEST(SpectrumMean, IsTheMeanOfTheSpectraOfItsSeries) {
  const WelchPlan plan(30);
  SpectrumMean average(plan);
  std::vector<double> expected(plan.num_bins(), 0.0);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<double> series = white_noise(40 + 10 * seed, seed);
    average.add(series);
    const Spectrum spectrum = welch(series, 30);
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] += spectrum.density[k] / 5.0;
  }
  const Spectrum mean = average.mean();
  EXPECT_EQ(average.num_series(), 5U);
  EXPECT_EQ(mean.frequencies, welch(white_noise(30, 0), 30).frequencies);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_NEAR(mean.density[k], expected[k], 1e-14 * expected[k]);
  }
}

TEST(SpectrumMean, StaysAsItWasWhenASeriesIsRefused) {
  const WelchPlan plan(8);
  SpectrumMean average(plan);
  EXPECT_TRUE(std::isnan(average.mean().density[0]));
  average.add(white_noise(20, 5));
  const std::vector<double> before = average.mean().density;
  EXPECT_THROW(average.add(white_noise(7, 6)), std::invalid_argument);
  std::vector<double> poisoned = white_noise(20, 7);
  poisoned.back() = std::nan("");
  EXPECT_THROW(average.add(poisoned), std::invalid_argument);
  EXPECT_EQ(average.mean().density, before);
  EXPECT_EQ(average.num_series(), 1U);
}

}  // namespace
}  // namespace tamis::analysis
