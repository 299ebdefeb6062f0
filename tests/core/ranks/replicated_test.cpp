#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <mutex>
#include <set>

#include "support/ranks.h"
#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"
#include "tamis/recording.h"

namespace tamis {
namespace {

using test::run_ranks;
using test::simulate_epoch;
using test::simulate_epochs;
using test::simulated_loss;

PrunerOptions options_with(const std::string& score) {
  return {.num_samples = 1009, .num_epochs = 6, .score = Spec{score}, .seed = 3};
}

// What one process knows that sees the batches of all ranks: rank r's batch k is every W-th sample
// of a stretch of the plan.
Pruner all_in_one(const PrunerOptions& options, std::size_t num_ranks, std::size_t batch_size,
                  std::uint64_t num_epochs) {
  Pruner pruner(options);
  for (std::uint64_t epoch = 0; epoch < num_epochs; ++epoch) {
    const EpochPlan& plan = pruner.start_epoch(epoch);
    const std::size_t per_rank = (plan.size() + num_ranks - 1) / num_ranks;
    for (std::size_t begin = 0; begin < per_rank; begin += batch_size) {
      for (std::size_t r = 0; r < num_ranks; ++r) {
        std::vector<std::uint32_t> batch;
        double sum = 0.0;
        const std::size_t end = std::min(begin + batch_size, per_rank);
        for (std::size_t j = begin; j < end; ++j) {
          const std::size_t slot = j * num_ranks + r;
          const std::uint32_t index = plan.order()[slot % plan.size()];
          sum += static_cast<double>(simulated_loss(index, epoch));
          if (slot < plan.size()) batch.push_back(index);  // padding is scored once, in its place
        }
        const bool is_bad = (begin / batch_size) % 13 == 12;
        const double mean = is_bad ? std::numeric_limits<double>::infinity()
                                   : sum / static_cast<double>(end - begin);
        pruner.observe(batch, static_cast<double>(static_cast<float>(mean)));
      }
    }
  }
  return pruner;
}

class ReplicatedScores : public testing::TestWithParam<std::string> {};

TEST_P(ReplicatedScores, AreThoseOfOneProcessThatSeesAllBatches) {
  constexpr std::size_t kBatch = 20;
  const PrunerOptions options = options_with(GetParam());
  for (const std::size_t num_ranks : {1U, 2U, 3U, 4U}) {
    const Pruner reference = all_in_one(options, num_ranks, kBatch, 3);
    const std::vector<float> expected = reference.scores();
    run_ranks(num_ranks, [&](const auto& communicator) {
      Pruner pruner(options, communicator);
      simulate_epochs(pruner, 0, 3, kBatch);
      pruner.exchange();
      const std::vector<float> scores = pruner.scores();
      for (std::size_t i = 0; i < scores.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(scores[i]),
                  std::bit_cast<std::uint32_t>(expected[i]));
      }
      EXPECT_EQ(pruner.num_observations(), reference.num_observations());
      EXPECT_EQ(pruner.num_skipped_observations(), reference.num_skipped_observations());
      EXPECT_GT(pruner.num_skipped_observations(), 0U);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Each, ReplicatedScores,
                         testing::Values("batch-loss", "last-batch-loss", "batch-loss-mean",
                                         "reconstruction", "loss-average", "loss-ucb"),
                         [](const auto& it) {
                           std::string name = it.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Replicated, SelectsTheSameSamplesWhateverTheNumberOfRanks) {
  // The same scores: those of the samples' own losses do not depend on the batches.
  const PrunerOptions options = options_with("sample-loss");
  Pruner one(options);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const EpochPlan& plan = one.start_epoch(epoch);
    std::vector<float> losses;
    for (const std::uint32_t i : plan.order()) losses.push_back(simulated_loss(i, epoch));
    one.observe(plan.order(), losses);
  }
  const auto order = one.start_epoch(3).order();
  for (const std::size_t num_ranks : {1U, 2U, 3U, 4U}) {
    run_ranks(num_ranks, [&](const auto& communicator) {
      Pruner pruner(options, communicator);
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        const EpochPlan& plan = pruner.start_epoch(epoch);
        for (std::size_t j = 0; j < plan.size(); ++j) {
          const float loss = simulated_loss(static_cast<std::uint32_t>(plan.sample(j)), epoch);
          pruner.observe(j, std::span(&loss, 1));
        }
      }
      const EpochPlan& plan = pruner.start_epoch(3);
      ASSERT_EQ(plan.num_selected(), order.size());
      for (std::size_t j = 0; j < plan.size(); ++j) {
        ASSERT_EQ(plan.sample(j), order[(j * num_ranks + communicator->rank()) % order.size()]);
      }
    });
  }
}

TEST(Replicated, RanksHaveBatchesOfOneWeightIfTheirStepIsHomogeneous) {
  constexpr std::size_t kBatch = 10;
  run_ranks(3, [&](const auto& communicator) {
    PrunerOptions options = options_with("batch-loss");
    options.homogeneous_batch_size = 3 * kBatch;
    Pruner pruner(options, communicator);
    simulate_epochs(pruner, 0, 2, kBatch);
    const EpochPlan& plan = pruner.start_epoch(2);
    bool has_rescaled = false;
    // The last step may be short, and so mixed.
    for (std::size_t begin = 0; begin + kBatch < plan.size(); begin += kBatch) {
      for (std::size_t j = begin; j < begin + kBatch; ++j) {
        EXPECT_EQ(plan.weight(j), plan.weight(begin));
      }
      has_rescaled = has_rescaled || plan.weight(begin) != 1.0F;
    }
    EXPECT_TRUE(has_rescaled);
  });
}

TEST(Replicated, BooksLossesOfSamplesOutsideThePlan) {
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner(options_with("last-batch-loss"), communicator);
    pruner.start_epoch(0);
    const SampleIndex index = communicator->rank() == 0 ? 17 : 900;
    pruner.observe(std::span(&index, 1), communicator->rank() == 0 ? 4.0 : 5.0);
    pruner.exchange();
    EXPECT_EQ(pruner.scores()[17], 4.0F);
    EXPECT_EQ(pruner.scores()[900], 5.0F);
    EXPECT_EQ(pruner.num_observations(), 2U);
  });
}

TEST(Replicated, ExchangesNothingInAStepAndFourBytesPerBatchAfterAnEpoch) {
  constexpr std::size_t kSamples = 1'000'000;
  constexpr std::size_t kBatch = 256;
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner({.num_samples = kSamples, .num_epochs = 3, .score = Spec{"batch-loss"}},
                  communicator);
    const auto traffic = [&] {
      return communicator->bytes_sent() + communicator->bytes_received();
    };
    pruner.start_epoch(0);
    const std::uint64_t before = traffic();
    simulate_epoch(pruner, kBatch);
    EXPECT_EQ(traffic(), before);
    pruner.start_epoch(1);
    const std::uint64_t num_batches = 2 * (kSamples / 2 / kBatch + 1);
    EXPECT_LE(traffic() - before, 8 * num_batches);
    EXPECT_LE(traffic() - before, 4 * num_batches + 300) << "the rest: headers and the check";
  });
}

TEST(Replicated, IndicesAbove24BitsAreExact) {
  constexpr std::size_t kSamples = (1U << 24U) + 1000;
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner({.num_samples = kSamples,
                   .num_epochs = 1,
                   .policy = {"none"},
                   .score = Spec{"last-batch-loss"}},
                  communicator);
    const std::vector<SampleIndex> ours = {
        static_cast<SampleIndex>((1U << 24U) + 1 + communicator->rank())};
    pruner.start_epoch(0);
    pruner.observe(ours, 1.0 + static_cast<double>(communicator->rank()));
    pruner.exchange();
    const std::vector<float> scores = pruner.scores();
    EXPECT_TRUE(std::isnan(scores[1U << 24U]));
    EXPECT_EQ(scores[(1U << 24U) + 1], 1.0F);
    EXPECT_EQ(scores[(1U << 24U) + 2], 2.0F);
    EXPECT_TRUE(std::isnan(scores[(1U << 24U) + 3]));
  });
}

TEST(Replicated, RankZeroRecordsWhatAllRanksObserved) {
  const PrunerOptions options = options_with("sample-loss");
  const test::ScratchFolder folder;
  std::vector<std::byte> state;
  const auto record = [&](const auto& communicator, bool resumes) {
    Pruner pruner(options, communicator);
    if (resumes) pruner.deserialize(state);
    pruner.record(folder / "record", {.num_recorded = options.num_samples});
    EXPECT_EQ(pruner.recorder() != nullptr, communicator->rank() == 0);
    simulate_epochs(pruner, resumes ? 2 : 0, resumes ? 3 : 2, 20);
    auto bytes = pruner.serialize();
    if (resumes) return;
    simulate_epochs(pruner, 2, 3, 20);  // recorded, and forgotten by the run that resumes
    if (communicator->rank() == 0) state = std::move(bytes);
  };
  run_ranks(3, [&](const auto& communicator) { record(communicator, false); });
  run_ranks(3, [&](const auto& communicator) { record(communicator, true); });
  const Recording recording(folder / "record");
  Pruner replayed(options);
  std::set<std::uint64_t> epochs;
  recording.read([&](const RecordedStep& step) {
    epochs.insert(step.epoch);
    EXPECT_EQ(step.losses.size(), step.indices.size());
    replayed.observe(step.indices, step.losses);
  });
  EXPECT_EQ(epochs, (std::set<std::uint64_t>{0, 1, 2}));
  const std::vector<float> expected = replayed.scores();
  run_ranks(3, [&](const auto& communicator) {
    Pruner pruner(options, communicator);
    simulate_epochs(pruner, 0, 3, 20);
    pruner.exchange();
    EXPECT_EQ(pruner.num_observations(), replayed.num_observations());
    EXPECT_EQ(pruner.num_skipped_observations(), replayed.num_skipped_observations());
    EXPECT_THAT(pruner.scores(), testing::Pointwise(testing::NanSensitiveFloatEq(), expected));
  });
}

TEST(External, EveryRankPlansTheWholeEpochAndScoresAreThoseOfOneProcess) {
  constexpr std::size_t kBatch = 20;
  PrunerOptions options = options_with("batch-loss");
  for (const std::size_t num_ranks : {2U, 3U}) {
    Pruner single(options);
    options.layout = Layout::external;
    // Somebody else deals out the batches: the k-th goes to rank k % W.
    const auto train = [&](Pruner& pruner, std::size_t rank, std::size_t stride) {
      for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
        const EpochPlan& plan = pruner.start_epoch(epoch);
        for (std::size_t k = rank; k * kBatch < plan.size(); k += stride) {
          const std::size_t begin = k * kBatch;
          std::vector<SampleIndex> batch(std::min(kBatch, plan.size() - begin));
          plan.copy_to(begin, batch);
          const auto loss = simulated_loss(static_cast<std::uint32_t>(batch[0]), epoch);
          pruner.set_position(begin / (kBatch * num_ranks) * kBatch * num_ranks);
          pruner.observe(batch, static_cast<double>(loss));
        }
      }
    };
    train(single, 0, 1);
    run_ranks(num_ranks, [&](const auto& communicator) {
      Pruner pruner(options, communicator);
      train(pruner, communicator->rank(), num_ranks);
      pruner.exchange();
      EXPECT_EQ(pruner.plan()->size(), single.plan()->size());
      EXPECT_THAT(pruner.scores(),
                  testing::Pointwise(testing::NanSensitiveFloatEq(), single.scores()));
    });
  }
}

TEST(External, AStateStandsAfterTheLastSampleOfAnyRank) {
  PrunerOptions options = options_with("batch-loss");
  options.layout = Layout::external;
  std::vector<std::byte> state;
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner(options, communicator);
    pruner.start_epoch(0);
    pruner.set_position(80 + 20 * communicator->rank());
    const auto bytes = pruner.serialize();
    if (communicator->rank() == 0) state = bytes;
  });
  for (const std::size_t num_ranks : {2U, 3U}) {
    run_ranks(num_ranks, [&](const auto& communicator) {
      Pruner pruner(options, communicator);
      pruner.deserialize(state);
      EXPECT_EQ(pruner.position(), 100U);
      EXPECT_EQ(pruner.plan()->size(), options.num_samples);
    });
  }
}

TEST(Replicated, ResumesInTheMiddleOfAnEpochWithAnotherNumberOfRanks) {
  const PrunerOptions options = options_with("batch-loss");
  std::vector<std::byte> state;
  std::set<SampleIndex> done;
  std::set<SampleIndex> selected;
  std::mutex mutex;
  run_ranks(3, [&](const auto& communicator) {
    Pruner pruner(options, communicator);
    simulate_epochs(pruner, 0, 2, 10);
    const EpochPlan& plan = pruner.start_epoch(2);
    for (int k = 0; k < 11; ++k) test::simulate_step(pruner, 10);
    const auto bytes = pruner.serialize();
    const std::lock_guard lock(mutex);
    for (const SampleIndex sample : test::own_samples(plan)) selected.insert(sample);
    for (std::size_t j = 0; j < pruner.position(); ++j) done.insert(plan.sample(j));
    state = bytes;
  });
  for (const std::size_t num_ranks : {1U, 2U, 4U}) {
    std::multiset<SampleIndex> all(done.begin(), done.end());
    run_ranks(num_ranks, [&](const auto& communicator) {
      Pruner pruner(options, communicator);
      pruner.deserialize(state);
      const std::lock_guard lock(mutex);
      const EpochPlan& plan = *pruner.plan();
      for (std::size_t j = pruner.position(); j < plan.size(); ++j) {
        if (!plan.is_padding(j)) all.insert(plan.sample(j));
      }
    });
    EXPECT_EQ(all, std::multiset<SampleIndex>(selected.begin(), selected.end())) << num_ranks;
  }
}

}  // namespace
}  // namespace tamis
