// What the commands share, called directly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <random>

#include "program/shared/arguments.h"
#include "program/shared/histogram.h"
#include "program/shared/signals.h"
#include "program/shared/table.h"

namespace tamis::program {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::size_t total(const std::vector<HistogramBin>& bins) {
  std::size_t sum = 0;
  for (const HistogramBin& bin : bins) sum += bin.count;
  return sum;
}

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number("0.7"), 0.7);
  EXPECT_EQ(parse_number("-2e3"), -2000.0);
  EXPECT_EQ(parse_number("+1"), 1.0);
  EXPECT_TRUE(std::isnan(parse_number("nan").value()));
  for (const char* text : {"", " ", "1 ", " 1", "1,5", "0x10", "1e999", "++1", "one"}) {
    EXPECT_FALSE(parse_number(text).has_value()) << text;
  }
}

// As nohup starts a program.
TEST(StopSignals, LeaveASignalIgnoredThatWasIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const StopSignals signals;
    std::raise(SIGHUP);
    EXPECT_EQ(StopSignals::received(), 0);
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(StopSignals, AreNotedAndThenHandledAsBefore) {
  const auto handler = [](int) {};
  std::signal(SIGTERM, handler);
  {
    const StopSignals signals;
    std::raise(SIGTERM);
    EXPECT_EQ(StopSignals::received(), SIGTERM);
  }
  EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), static_cast<void (*)(int)>(handler));
}

TEST(WithCommas, GroupsThreeDigits) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1234567890), "1,234,567,890");
}

TEST(Histogram, CountsEveryFiniteScoreOnce) {
  const std::vector<float> scores = {0.0F, 1.0F, 2.0F, 3.0F, 4.0F, kNan, kInfinity, -kInfinity};
  const auto bins = histogram(scores, 4);
  ASSERT_EQ(bins.size(), 4U);
  EXPECT_EQ(bins[0].low, 0.0);
  EXPECT_EQ(bins[3].high, 4.0);
  EXPECT_EQ(bins[3].count, 2U);
  EXPECT_EQ(total(bins), 5U);
}

TEST(Histogram, HasOneBinForEqualScoresAndNoneForNone) {
  EXPECT_TRUE(histogram(std::vector<float>{kNan, kNan}, 5).empty());
  const auto bins = histogram(std::vector<float>(7, 2.5F), 5);
  ASSERT_EQ(bins.size(), 1U);
  EXPECT_EQ(bins[0].count, 7U);
}

TEST(Histogram, OutliersWidenOnlyTheOuterBins) {
  std::mt19937 random(2);
  std::vector<float> scores(10000);
  for (float& score : scores) score = std::uniform_real_distribution<float>(0.0F, 1.0F)(random);
  scores[0] = 1e6F;
  scores[1] = -1e6F;
  const auto bins = histogram(scores, 10);
  EXPECT_EQ(total(bins), scores.size());
  EXPECT_EQ(bins.front().low, -1e6);
  EXPECT_EQ(bins.back().high, 1e6);
  // Each of the inner bins holds about a tenth.
  for (std::size_t k = 1; k < 9; ++k) EXPECT_NEAR(static_cast<double>(bins[k].count), 990.0, 200.0);
}

TEST(Histogram, ExtremeScoresDoNotOverflow) {
  const float most = std::numeric_limits<float>::max();
  const auto bins = histogram(std::vector<float>{-most, 0.0F, most}, 3);
  EXPECT_EQ(total(bins), 3U);
  EXPECT_EQ(bins[1].count, 1U);
  const auto close = histogram(std::vector<float>{1.0F, std::nextafter(1.0F, 2.0F)}, 12);
  EXPECT_EQ(total(close), 2U);
}

TEST(Histogram, BarsFitTheWidthInBothAlphabets) {
  const std::vector<HistogramBin> bins = {{0.0, 1.0, 1}, {1.0, 2.0, 8}, {2.0, 3.0, 0}};
  const std::string ascii = format_histogram(bins, 60, false);
  EXPECT_EQ(ascii.find('\n', ascii.find('\n') + 1) - ascii.find('\n') - 1, 60U);
  EXPECT_THAT(ascii, HasSubstr(" ###\n"));
  EXPECT_THAT(format_histogram(bins, 60, true), HasSubstr("█"));
  EXPECT_EQ(ascii.back(), '\n');
}

}  // namespace
}  // namespace tamis::program
