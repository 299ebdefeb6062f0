#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "support/random_input.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

PrunerOptions options_of(std::size_t n, std::size_t batch_size, std::uint64_t seed,
                         double prune_ratio = 0.5) {
  return {.num_samples = n,
          .num_epochs = 10,
          .policy = {"infobatch", {{"prune_ratio", prune_ratio}}},
          .delta = 1.0,
          .seed = seed,
          .homogeneous_batch_size = batch_size};
}

// Scored by one loss per sample.
Pruner make_scored(const PrunerOptions& options, std::uint64_t seed) {
  Pruner pruner(options);
  const auto indices = test::iota_indices<std::uint32_t>(options.num_samples);
  pruner.observe(indices, test::random_scores(options.num_samples, seed));
  return pruner;
}

std::vector<std::span<const std::uint32_t>> batches_of(const EpochPlan& plan, std::size_t size) {
  std::vector<std::span<const std::uint32_t>> batches;
  for (std::size_t at = 0; at < plan.size(); at += size) {
    batches.push_back(plan.order().subspan(at, std::min(size, plan.size() - at)));
  }
  return batches;
}

TEST(HomogeneousBatches, HoldSamplesOfOneWeightAndLoseNone) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = 1 + random() % 400;
    const std::size_t batch_size = 1 + random() % 40;
    const double ratio = static_cast<double>(random() % 10) / 10.0;
    const Pruner pruner = make_scored(options_of(n, batch_size, random(), ratio), random());
    PrunerOptions mixed_options = pruner.options();
    mixed_options.homogeneous_batch_size = 0;
    Pruner mixed(mixed_options);
    mixed.observe(test::iota_indices<std::uint32_t>(n), pruner.scores());
    const EpochPlan plan = pruner.preview(1);
    const EpochPlan before = mixed.preview(1);
    const std::set<std::uint32_t> samples(plan.order().begin(), plan.order().end());
    ASSERT_EQ(samples.size(), plan.size());
    for (const std::uint32_t i : before.order()) ASSERT_TRUE(samples.contains(i));
    ASSERT_LT(plan.size() - before.size(), batch_size);
    for (const auto& batch : batches_of(plan, batch_size)) {
      for (const std::uint32_t i : batch) ASSERT_EQ(plan.weight_of(i), plan.weight_of(batch[0]));
    }
  }
}

TEST(HomogeneousBatches, KeepTheSumOfTheWeights) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::size_t n = 1000;
    const EpochPlan plan = make_scored(options_of(n, 32, seed, 0.3), seed).preview(1);
    double sum = 0.0;
    for (const std::uint32_t i : plan.order()) sum += static_cast<double>(plan.weight_of(i));
    // floor(0.7 * easy) / 0.7 lies less than 1 / 0.7 below easy.
    EXPECT_GT(sum, static_cast<double>(n) - 1.5);
    EXPECT_LT(sum, static_cast<double>(n) + 0.01);
  }
}

TEST(HomogeneousBatches, ComeInRandomOrder) {
  // Of 20 batches some 6 are rescaled: each of the 20 places must get its share of them.
  std::array<int, 20> counts{};
  constexpr int kPlans = 2000;
  int total = 0;
  for (std::uint64_t seed = 0; seed < kPlans; ++seed) {
    const EpochPlan plan = make_scored(options_of(950, 32, seed), 3).preview(1);
    const auto batches = batches_of(plan, 32);
    ASSERT_GT(batches.size(), counts.size());
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const int rescaled = plan.weight_of(batches[k][0]) != 1.0F ? 1 : 0;
      counts[k] += rescaled;
      total += rescaled;
    }
  }
  const double share = static_cast<double>(total) / (20.0 * kPlans);
  // 5.5 deviations: a correct program fails with probability below 1e-6.
  const double limit = 5.5 * std::sqrt(kPlans * share * (1.0 - share));
  for (const int count : counts) EXPECT_NEAR(count, share * kPlans, limit);
}

TEST(HomogeneousBatches, AreTheOrdinaryPlanWhereAllWeightsAreOne) {
  PrunerOptions options = options_of(500, 16, 4);
  PrunerOptions mixed = options;
  mixed.homogeneous_batch_size = 0;
  const EpochPlan a = Pruner(options).preview(0);
  const EpochPlan b = Pruner(mixed).preview(0);
  EXPECT_TRUE(std::equal(a.order().begin(), a.order().end(), b.order().begin(), b.order().end()));
}

TEST(HomogeneousBatches, PutASingleLastSampleBehindABatchOfItsWeight) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const EpochPlan plan = make_scored(options_of(200, 8, seed), seed).preview(1);
    if (plan.size() % 8 != 1) continue;
    ++found;
    const auto order = plan.order();
    EXPECT_EQ(plan.weight(plan.size() - 1), plan.weight(plan.size() - 2));
  }
  EXPECT_GT(found, 20);
}

// A linear model with squared error: the gradient of sample i is x_i (x_i . theta - y_i).
class Gradients {
 public:
  static constexpr std::size_t kSize = 3;
  using Vector = std::array<double, kSize>;

  explicit Gradients(std::size_t n) : gradients_(n), losses_(n) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < n; ++i) {
      Vector x{normal(random) + 1.0, normal(random), normal(random) - 0.5};
      const double error = 0.4 * x[0] - x[1] + 0.3 * normal(random);
      for (std::size_t d = 0; d < kSize; ++d) gradients_[i][d] = error * x[d];
      losses_[i] = static_cast<float>(0.5 * error * error);
    }
  }

  std::span<const float> losses() const { return losses_; }

  Vector full() const {
    Vector sum{};
    for (const Vector& gradient : gradients_) add(sum, gradient, 1.0);
    return scaled(sum, 1.0 / static_cast<double>(gradients_.size()));
  }

  // What an epoch of scalar updates adds up to: the gradient of mean loss times mean weight, each
  // batch as often as it has samples.
  Vector of_epoch(const EpochPlan& plan, std::size_t batch_size) const {
    Vector sum{};
    for (const auto& batch : batches_of(plan, batch_size)) {
      const std::vector<SampleIndex> samples(batch.begin(), batch.end());
      const double weight = plan.mean_weight_of(samples);
      for (const std::uint32_t i : batch) add(sum, gradients_[i], weight);
    }
    return scaled(sum, 1.0 / static_cast<double>(gradients_.size()));
  }

 private:
  static void add(Vector& sum, const Vector& gradient, double weight) {
    for (std::size_t d = 0; d < kSize; ++d) sum[d] += weight * gradient[d];
  }
  static Vector scaled(Vector sum, double factor) {
    for (double& value : sum) value *= factor;
    return sum;
  }

  std::vector<Vector> gradients_;
  std::vector<float> losses_;
};

struct Distance {
  double bias = 0.0;        // of the mean over many plans from the full gradient, largest component
  double deviations = 0.0;  // the same in standard errors of that mean
};

Distance distance_from_full(std::size_t homogeneous_batch_size) {
  constexpr std::size_t n = 1200;
  constexpr std::size_t kBatch = 16;
  constexpr int kPlans = 3000;
  const Gradients gradients(n);
  const Gradients::Vector full = gradients.full();
  Gradients::Vector sum{};
  Gradients::Vector squares{};
  for (std::uint64_t seed = 0; seed < kPlans; ++seed) {
    Pruner pruner(options_of(n, homogeneous_batch_size, seed));
    pruner.observe(test::iota_indices<std::uint32_t>(n), gradients.losses());
    const auto epoch = gradients.of_epoch(pruner.preview(1), kBatch);
    for (std::size_t d = 0; d < Gradients::kSize; ++d) {
      sum[d] += epoch[d] - full[d];
      squares[d] += (epoch[d] - full[d]) * (epoch[d] - full[d]);
    }
  }
  Distance result;
  for (std::size_t d = 0; d < Gradients::kSize; ++d) {
    const double mean = sum[d] / kPlans;
    const double error = std::sqrt((squares[d] / kPlans - mean * mean) / kPlans);
    result.bias = std::max(result.bias, std::abs(mean));
    result.deviations = std::max(result.deviations, std::abs(mean) / error);
  }
  return result;
}

// Three components at 5.2 deviations: a correct program fails with probability below 1e-6, plus the
// bias of rounding the kept easy samples down, which is below 1 / 1200 of an easy sample's
// gradient.
TEST(HomogeneousBatches, GiveTheGradientOfTheFullDataInExpectation) {
  const Distance distance = distance_from_full(16);
  EXPECT_LT(distance.deviations, 5.2);
  EXPECT_LT(distance.bias, 1e-3);
}

TEST(HomogeneousBatches, AreNeededForThatAsMixedBatchesAreBiased) {
  const Distance distance = distance_from_full(0);
  EXPECT_GT(distance.deviations, 50.0);
  EXPECT_GT(distance.bias, 0.05);
}

TEST(HomogeneousBatches, ResumeExactlyAtEveryBatch) {
  const PrunerOptions options = options_of(500, 32, 9);
  Pruner whole(options);
  test::simulate_epochs(whole, 0, 3, 32);
  whole.start_epoch(3);
  std::vector<std::vector<std::byte>> saved;
  while (whole.position() < whole.plan()->size()) {
    test::simulate_step(whole, 32);
    saved.push_back(whole.serialize());
  }
  test::simulate_epochs(whole, 4, 6, 32);
  for (const auto& state : saved) {
    Pruner resumed(options);
    resumed.deserialize(state);
    EXPECT_EQ(resumed.serialize(), state);
    test::simulate_epoch(resumed, 32);
    test::simulate_epochs(resumed, 4, 6, 32);
    ASSERT_EQ(resumed.serialize(), whole.serialize());
  }
}

}  // namespace
}  // namespace tamis
