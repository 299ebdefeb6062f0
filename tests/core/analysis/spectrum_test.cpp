#include "tamis/analysis/spectrum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "tamis/analysis/welch.h"

namespace tamis::analysis {
namespace {

// Bins at 0, 0.25 and 0.5 that reach over [0, 0.125], [0.125, 0.375] and [0.375, 0.5].
const Spectrum kThreeBins = {
    .frequencies = {0.0, 0.25, 0.5}, .density = {4.0, 8.0, 12.0}, .resolution = 0.25};

TEST(SplitEnergy, DividesABinInProportionToTheFrequency) {
  const EnergySplit split = split_energy(kThreeBins, 0.1875);
  EXPECT_DOUBLE_EQ(split.below, 1.0 + 0.25 * 2.0);
  EXPECT_DOUBLE_EQ(split.above, 0.75 * 2.0 + 3.0);
  EXPECT_DOUBLE_EQ(split.share_below(), 0.25);
}

TEST(SplitEnergy, PutsEverythingAboveZeroAndNothingAboveTheHighestFrequency) {
  EXPECT_EQ(split_energy(kThreeBins, 0.0).below, 0.0);
  EXPECT_DOUBLE_EQ(split_energy(kThreeBins, 0.0).above, 6.0);
  EXPECT_DOUBLE_EQ(split_energy(kThreeBins, 0.5).below, 6.0);
  EXPECT_EQ(split_energy(kThreeBins, 0.5).above, 0.0);
  EXPECT_EQ(split_energy(kThreeBins, 7.0).above, 0.0);
}

TEST(SplitEnergy, LosesNoPowerAndGrowsWithTheFrequencyForEverySegmentLength) {
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal;
  std::vector<double> series(50);
  for (double& value : series) value = normal(engine);
  for (std::size_t length = 1; length <= 50; ++length) {
    const Spectrum spectrum = WelchPlan(length).spectrum(series);
    double power = 0.0;
    for (const double density : spectrum.density) power += density * spectrum.resolution;
    double previous = -1.0;
    for (int step = 0; step <= 50; ++step) {
      const EnergySplit split = split_energy(spectrum, 0.01 * step);
      EXPECT_NEAR(split.below + split.above, power, 1e-12);
      EXPECT_GE(split.below, previous);
      EXPECT_GE(split.above, 0.0);
      previous = split.below;
    }
    EXPECT_NEAR(split_energy(spectrum, 0.5).above, 0.0, 1e-12) << "segment length " << length;
  }
}

TEST(SplitEnergy, HasNoShareWithoutPower) {
  Spectrum silent = kThreeBins;
  silent.density = {0.0, 0.0, 0.0};
  EXPECT_TRUE(std::isnan(split_energy(silent, 0.2).share_below()));
}

TEST(SplitEnergy, RefusesWhatHasNoMeaning) {
  EXPECT_THROW(split_energy(kThreeBins, -0.1), std::invalid_argument);
  EXPECT_THROW(split_energy(kThreeBins, std::nan("")), std::invalid_argument);
  EXPECT_THROW(split_energy({}, 0.1), std::invalid_argument);
  EXPECT_THROW(split_energy({.frequencies = {0.0}, .density = {1.0}}, 0.1), std::invalid_argument);
}

}  // namespace
}  // namespace tamis::analysis
