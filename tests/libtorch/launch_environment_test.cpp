#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "tamis/libtorch/process_group.h"

namespace tamis::libtorch::launch_environment_test {

// The variables of all launchers, unset but for some.
class LaunchEnvironment : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void set(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  }

 private:
  static void clear() {
    for (const char* const name :
         {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
          "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK",
          "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_PROCID", "SLURM_NTASKS",
          "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(LaunchEnvironment, WithoutALauncherThereIsNoGroup) {
  EXPECT_FALSE(process_group_from_environment().has_value());
  set({{"RANK", "0"}});
  EXPECT_FALSE(process_group_from_environment().has_value());
}

TEST_F(LaunchEnvironment, TorchrunIsUnderstood) {
  set({{"RANK", "2"},
       {"WORLD_SIZE", "4"},
       {"LOCAL_WORLD_SIZE", "2"},
       {"MASTER_ADDR", "node7"},
       {"MASTER_PORT", "1234"},
       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
       {"TORCHELASTIC_RUN_ID", "job"},
       {"TORCHELASTIC_RESTART_COUNT", "3"}});
  const auto options = process_group_from_environment().value();
  EXPECT_EQ(options.rank, 2U);
  EXPECT_EQ(options.size, 4U);
  EXPECT_EQ(options.num_here, 2U);
  EXPECT_EQ(options.host, "node7");
  EXPECT_EQ(options.port, 1234);
  EXPECT_TRUE(options.has_agent_store);
  EXPECT_EQ(options.prefix, "job/3");
}

TEST_F(LaunchEnvironment, MpirunAndSlurmAreUnderstood) {
  set({{"OMPI_COMM_WORLD_RANK", "1"},
       {"OMPI_COMM_WORLD_SIZE", "3"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}});
  auto options = process_group_from_environment().value();
  EXPECT_EQ(options.rank, 1U);
  EXPECT_EQ(options.size, 3U);
  EXPECT_EQ(options.num_here, 3U);
  EXPECT_FALSE(options.has_agent_store);

  SetUp();
  set({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}});
  options = process_group_from_environment().value();
  EXPECT_EQ(options.rank, 0U);
  EXPECT_EQ(options.size, 2U);
}

TEST_F(LaunchEnvironment, BadValuesAreNamed) {
  const auto message = [] {
    try {
      (void)process_group_from_environment();
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  set({{"RANK", "x"}, {"WORLD_SIZE", "2"}});
  EXPECT_THAT(message(), testing::HasSubstr("RANK must be a whole number up to 1000000, got x"));
  set({{"RANK", "2"}});
  EXPECT_THAT(message(), testing::HasSubstr("RANK must be below WORLD_SIZE (2), got 2"));
  set({{"RANK", "1"}, {"MASTER_PORT", "70000"}});
  EXPECT_THAT(message(), testing::HasSubstr("MASTER_PORT must be a whole number up to 65535"));
}

}  // namespace tamis::libtorch::launch_environment_test
