#include "tamis/analysis/decomposition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace tamis::analysis {
namespace {

// Visits of one sample in batches of varying size whose other losses are exponentially distributed.
std::vector<Visit> random_visits(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::exponential_distribution<double> loss(1.0);
  std::uniform_int_distribution<std::uint32_t> size(1, 40);
  std::vector<Visit> visits;
  for (std::size_t k = 0; k < count; ++k) {
    Visit visit{.batch_loss = 0.0, .sample_loss = loss(engine), .batch_size = size(engine)};
    double sum = visit.sample_loss;
    for (std::uint32_t j = 1; j < visit.batch_size; ++j) sum += loss(engine);
    visit.batch_loss = sum / visit.batch_size;
    visits.push_back(visit);
  }
  return visits;
}

TEST(Decomposition, SplitsASmallExampleByHand) {
  const std::vector<Visit> visits = {{.batch_loss = 3.0, .sample_loss = 4.0, .batch_size = 4},
                                     {.batch_loss = 2.0, .sample_loss = 1.0, .batch_size = 2}};
  const Decomposition parts = decompose(visits, 0.5, 8.0);
  EXPECT_EQ(parts.signal, (std::vector<double>{1.0, 0.5}));
  EXPECT_EQ(parts.noise, (std::vector<double>{2.0, 1.5}));
  EXPECT_EQ(parts.filtered_signal, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(parts.filtered_noise, (std::vector<double>{1.0, 1.25}));
  EXPECT_EQ(parts.initial_term, (std::vector<double>{4.0, 2.0}));
  EXPECT_EQ(parts.score, (std::vector<double>{5.5, 3.75}));
  EXPECT_EQ(sum_of_parts(parts), parts.score);
}

TEST(Decomposition, AddsUpToTheScoreAfterEveryVisit) {
  for (const double alpha : {0.0, 0.3, 0.7, 0.9, 0.999}) {
    for (const double initial : {0.0, 2.3, -1.0}) {
      const Decomposition parts = decompose(random_visits(500, 1), alpha, initial);
      const std::vector<double> sum = sum_of_parts(parts);
      ASSERT_EQ(sum.size(), 500U);
      for (std::size_t k = 0; k < sum.size(); ++k) EXPECT_NEAR(sum[k], parts.score[k], 1e-13);
    }
  }
}

TEST(Decomposition, FiltersByConvolutionWithTheImpulseResponse) {
  const double alpha = 0.8;
  const Decomposition parts = decompose(random_visits(60, 2), alpha, 1.0);
  for (std::size_t k = 0; k < 60; ++k) {
    double signal = 0.0;
    double noise = 0.0;
    for (std::size_t n = 0; n <= k; ++n) {
      const double h = (1.0 - alpha) * std::pow(alpha, static_cast<double>(n));
      signal += h * parts.signal[k - n];
      noise += h * parts.noise[k - n];
    }
    EXPECT_NEAR(parts.filtered_signal[k], signal, 1e-13);
    EXPECT_NEAR(parts.filtered_noise[k], noise, 1e-13);
  }
}

TEST(Decomposition, AddsUpToAScoreKeptInSinglePrecision) {
  const std::vector<Visit> visits = random_visits(200, 3);
  const double initial = visits[0].batch_loss;
  const std::vector<double> sum = sum_of_parts(decompose(visits, 0.7, initial));
  auto score = static_cast<float>(initial);
  for (std::size_t k = 0; k < visits.size(); ++k) {
    score = 0.7F * score + 0.3F * static_cast<float>(visits[k].batch_loss);
    EXPECT_NEAR(sum[k], score, 1e-5 * score);
  }
}

TEST(Decomposition, FindsNoNoiseInABatchOfOne) {
  const std::vector<Visit> visits = {{.batch_loss = 0.3, .sample_loss = 0.3, .batch_size = 1}};
  EXPECT_EQ(decompose(visits, 0.7, 0.0).noise, std::vector<double>{0.0});
}

TEST(Decomposition, IsEmptyWithoutVisits) {
  const Decomposition parts = decompose({}, 0.7, 1.0);
  EXPECT_TRUE(parts.score.empty());
  EXPECT_TRUE(sum_of_parts(parts).empty());
}

std::string message_for(const Visit& visit) {
  const std::vector<Visit> visits = {{}, visit};
  try {
    decompose(visits, 0.7, 0.0);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Decomposition, NamesTheVisitItCannotUse) {
  EXPECT_EQ(message_for({.batch_loss = std::nan("")}),
            "decompose: visits[1].batch_loss must be a finite number, got nan");
  EXPECT_EQ(message_for({.sample_loss = std::numeric_limits<double>::infinity()}),
            "decompose: visits[1].sample_loss must be a finite number, got inf");
  EXPECT_EQ(message_for({.batch_size = 0}),
            "decompose: visits[1].batch_size must be at least 1, got 0");
  EXPECT_THROW(decompose({}, 1.0, 0.0), std::invalid_argument);
  EXPECT_THROW(decompose({}, 0.7, std::nan("")), std::invalid_argument);
}

}  // namespace
}  // namespace tamis::analysis
