// Recordings that say to be of more samples than they have anything of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"
#include "support/rewritten_state.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"

namespace tamis::test {
namespace {

using testing::HasSubstr;

class ClaimedSamples : public ::testing::Test {
 protected:
  ClaimedSamples() {
    Pruner pruner({.num_samples = 200,
                   .num_epochs = 12,
                   .policy = {.name = "none"},
                   .score = Spec{"batch-loss"},
                   .seed = 4});
    pruner.record(folder_ / "record", {.num_recorded = 200});
    simulate_with_losses(pruner, 12, 8);
  }
  void claim(const std::string& count) const {
    const auto path = folder_ / "record" / "samples.safetensors";
    write_bytes(path, rewritten(read_bytes(path),
                                [&](ContainerParts& parts) { parts.text("num_samples") = count; }));
  }

  TextFolder folder_;
};

TEST_F(ClaimedSamples, AreRefusedBeforeMemoryIsTakenForThem) {
  const Arguments commands = {"analyze", "suspects", "advise", "replay"};
  const auto arguments = [&](const std::string& command) {
    Arguments all = {command, folder_.at("record")};
    if (command == "replay") all.insert(all.end(), {"--score", "batch-loss"});
    return all;
  };
  for (const std::string& command : commands) {
    EXPECT_EQ(run(arguments(command)).code, 0) << command;
  }
  claim("4294967295");
  for (const std::string& command : commands) {
    EXPECT_THAT(run_refused(1, arguments(command), {.memory_limit = rlim_t{200} << 20U}),
                HasSubstr("num_samples 4294967295 needs about"))
        << command;
  }
}

}  // namespace
}  // namespace tamis::test
