// Norms of watched outputs on several ranks: both layouts make the scores that one process makes of
// the same batches.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "support/ranks.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

using test::run_ranks;

constexpr std::size_t kSamples = 1003;
constexpr std::size_t kBatch = 16;

struct Step {
  std::vector<std::uint32_t> scored;
  float mean_loss = 0.0F;
  std::vector<float> norms;  // with those of samples that fill up
};

// Trains one epoch and returns what this rank did, in its order.
std::vector<Step> train_epoch(Pruner& pruner, bool gives_losses) {
  const EpochPlan& plan = *pruner.plan();
  std::vector<Step> steps;
  for (std::size_t begin = 0; begin < plan.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, plan.size() - begin);
    Step step;
    std::vector<float> losses;
    double sum = 0.0;
    for (std::size_t j = begin; j < begin + count; ++j) {
      const auto sample = static_cast<std::uint32_t>(plan.sample(j));
      losses.push_back(test::simulated_loss(sample, plan.epoch()));
      step.norms.push_back(test::simulated_loss(sample ^ 5U, plan.epoch()));
      if (!plan.is_padding(j)) step.scored.push_back(sample);
      sum += static_cast<double>(losses.back());
    }
    const double mean = sum / static_cast<double>(count);
    step.mean_loss = static_cast<float>(mean);
    if (gives_losses) {
      pruner.observe(begin, losses, step.norms);
    } else {
      pruner.observe(begin, mean, step.norms);
    }
    if (!step.scored.empty()) steps.push_back(step);
  }
  pruner.set_position(plan.size());
  return steps;
}

class NormsOnRanks : public testing::TestWithParam<Layout> {};

TEST_P(NormsOnRanks, GiveTheSharesOfEveryBatchOnItsOwn) {
  for (const std::size_t num_ranks : {1U, 2U, 3U, 4U}) {
    for (const bool gives_losses : {false, true}) {
      std::mutex mutex;
      std::vector<float> expected(kSamples, kUnscored);
      std::vector<float> scores(kSamples, kUnscored);
      run_ranks(num_ranks, [&](const auto& communicator) {
        Pruner pruner({.num_samples = kSamples,
                       .num_epochs = 3,
                       .policy = {"infobatch"},
                       .score = Spec{"output-gradient"},
                       .seed = 4,
                       .layout = GetParam()},
                      communicator);
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
          pruner.start_epoch(epoch);
          for (const Step& step : train_epoch(pruner, gives_losses)) {
            double sum = 0.0;
            for (const float norm : step.norms) sum += static_cast<double>(norm);
            const std::lock_guard lock(mutex);
            for (std::size_t k = 0; k < step.scored.size(); ++k) {
              expected[step.scored[k]] = static_cast<float>(
                  static_cast<double>(step.mean_loss) * static_cast<double>(step.norms[k]) *
                  static_cast<double>(step.norms.size()) / sum);
            }
          }
        }
        pruner.exchange();
        const std::vector<float> kept = pruner.scores();
        const std::lock_guard lock(mutex);
        std::copy(kept.begin(), kept.end(),
                  scores.begin() + static_cast<std::ptrdiff_t>(pruner.first_sample()));
      });
      for (std::size_t i = 0; i < kSamples; ++i) {
        ASSERT_NEAR(scores[i], expected[i], 1e-6 * static_cast<double>(expected[i]))
            << "sample " << i << " on " << num_ranks << " ranks";
      }
    }
  }
}

TEST_P(NormsOnRanks, CountABatchWithABadNorm) {
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner({.num_samples = 64,
                   .num_epochs = 3,
                   .score = Spec{"output-gradient"},
                   .layout = GetParam()},
                  communicator);
    pruner.start_epoch(0);
    std::vector<float> norms(8, 1.0F);
    pruner.observe(0, 2.0, norms);
    norms[3] = std::nanf("");
    pruner.observe(8, 2.0, norms);
    pruner.exchange();
    const std::uint64_t num_ranks = GetParam() == Layout::replicated ? 2 : 1;
    EXPECT_EQ(pruner.num_observations(), num_ranks);
    EXPECT_EQ(pruner.num_skipped_observations(), num_ranks);
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, NormsOnRanks,
                         testing::Values(Layout::replicated, Layout::sharded),
                         [](const auto& layout) { return std::string(to_text(layout.param)); });

// One rank is a run of one process, to the bit.
TEST(NormsOnOneRank, AreThoseOfAProcessWithoutRanks) {
  for (const Layout layout : {Layout::replicated, Layout::sharded}) {
    const PrunerOptions options{.num_samples = kSamples,
                                .num_epochs = 4,
                                .policy = {"none"},
                                .score = Spec{"output-gradient", {{"power", 1.7}, {"alpha", 0.3}}},
                                .layout = layout};
    Pruner alone(options);
    Pruner rank(options, make_single_process());
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      alone.start_epoch(epoch);
      rank.start_epoch(epoch);
      ASSERT_EQ(test::own_samples(*alone.plan()), test::own_samples(*rank.plan()));
      train_epoch(alone, false);
      train_epoch(rank, false);
    }
    EXPECT_EQ(alone.serialize(), rank.serialize());
  }
}

// Only ranks that need norms, for the score or for a recording, send them.
TEST(NormsOnRanksOfOtherScores, AreNotSent) {
  run_ranks(2, [&](const auto& communicator) {
    const PrunerOptions options{
        .num_samples = kSamples, .num_epochs = 3, .score = Spec{"batch-loss"}};
    const auto bytes_of_epoch = [&](bool has_norms) {
      Pruner pruner(options, communicator);
      const EpochPlan& plan = pruner.start_epoch(0);
      const std::vector<float> norms(kBatch, 1.0F);
      for (std::size_t begin = 0; begin + kBatch <= plan.size(); begin += kBatch) {
        if (has_norms) {
          pruner.observe(begin, 1.0, norms);
        } else {
          pruner.observe(begin, kBatch, 1.0);
        }
      }
      const std::uint64_t before = communicator->bytes_sent();
      pruner.exchange();
      return communicator->bytes_sent() - before;
    };
    EXPECT_EQ(bytes_of_epoch(true), bytes_of_epoch(false));
  });
}

}  // namespace
}  // namespace tamis
