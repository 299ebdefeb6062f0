#include "tamis/rank_cost.h"

#include <gtest/gtest.h>

#include "support/ranks.h"
#include "support/simulated_run.h"

namespace tamis::detail {
namespace {

TEST(Prediction, IsWhatReplicatedRanksExchange) {
  for (const char* score : {"last-batch-loss", "sample-loss", "output-gradient"}) {
    for (const std::size_t num_ranks : {1U, 2U, 3U}) {
      test::run_ranks(num_ranks, [&](const auto& communicator) {
        Pruner pruner({.num_samples = 1000, .num_epochs = 3, .score = Spec{score}, .seed = 2},
                      communicator);
        const auto plan = pruner.start_epoch(0);
        const std::uint64_t sent = communicator->bytes_sent();
        const std::uint64_t received = communicator->bytes_received();
        test::simulate_epoch(pruner, 16);
        pruner.start_epoch(1);
        const RankCost cost = predict_replicated({.num_samples = 1000,
                                                  .num_selected = plan.num_selected(),
                                                  .num_ranks = num_ranks,
                                                  .batch_size = 16,
                                                  .observed = pruner.scorer().needs()},
                                                 0);
        EXPECT_EQ(communicator->bytes_sent() - sent, cost.bytes_sent);
        EXPECT_EQ(communicator->bytes_received() - received, cost.bytes_received);
      });
    }
  }
}

TEST(Prediction, AThousandMillionSamplesOnEightRanksAreHalfAGibEach) {
  const EpochShape shape{.num_samples = 1'000'000'000, .num_selected = 0, .num_ranks = 8};
  EXPECT_NEAR(static_cast<double>(sharded_memory(shape)), 0.5 * 0x1p30, 0.05 * 0x1p30);
}

}  // namespace
}  // namespace tamis::detail
