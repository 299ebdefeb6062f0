// simulate --ranks: what processes would exchange and keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json simulate(const Arguments& more) {
  Arguments all = {"simulate", "--epochs", "4", "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return run_json(all);
}

TEST(SimulateRanks, ReplicatedRanksExchangeAtMostEightBytesPerBatch) {
  const json out = simulate({"--samples", "1e6", "--ranks", "4", "--batch-size", "256"});
  EXPECT_EQ(out["layout"], "replicated");
  ASSERT_EQ(out["epochs"].size(), 4U);
  for (std::size_t e = 1; e < 4; ++e) {
    const std::uint64_t num_batches = out["epochs"][e - 1]["size"].get<std::uint64_t>() / 256;
    const std::uint64_t exchanged = out["epochs"][e]["bytes_sent"].get<std::uint64_t>() +
                                    out["epochs"][e]["bytes_received"].get<std::uint64_t>();
    EXPECT_LE(exchanged, 8 * num_batches);
    EXPECT_GE(exchanged, 4 * num_batches);
    EXPECT_LE(exchanged, 31 * 1024U);
  }
}

TEST(SimulateRanks, ShardedRanksExchangeAFewKilobytesForTenThousandMillionSamples) {
  const json infobatch = simulate({"--samples", "1e10", "--ranks", "8"});
  EXPECT_EQ(infobatch["layout"], "sharded");
  const json seta = simulate({"--samples", "1e10", "--ranks", "8", "--policy", "seta"});
  for (std::size_t e = 0; e < 4; ++e) {
    const auto exchanged = [&](const json& out) {
      return out["epochs"][e]["bytes_sent"].get<std::uint64_t>() +
             out["epochs"][e]["bytes_received"].get<std::uint64_t>();
    };
    EXPECT_LE(exchanged(infobatch), 4096U);
    EXPECT_LE(exchanged(seta), 1U << 20U);
    // 4 bytes of score, up to 4 of order, two bits.
    EXPECT_LE(infobatch["epochs"][e]["memory"], 8.26e10 / 8);
  }
}

TEST(SimulateRanks, RefusesAPartThatIsTooLarge) {
  const Outcome result = run({"simulate", "--samples", "1e10", "--ranks", "2"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("at most 2^32 - 1 samples"));
  EXPECT_EQ(run({"simulate", "--samples", "1e10"}).code, 2);
}

}  // namespace
}  // namespace tamis::test
