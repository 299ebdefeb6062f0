// `tamis train` on several processes, as a launcher starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "paths.h"
#include "runs/json.h"
#include "runs/run.h"
#include "support/process_team.h"
#include "support/scratch_folder.h"
#include "tamis/pruner.h"

namespace tamis::training::team_test {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::ProcessTeam;
using test::ScratchFolder;
using ::testing::HasSubstr;

constexpr milliseconds kPatience(240'000);

std::vector<std::string> train(const fs::path& folder, const std::string& batch_size = "48") {
  return {TAMIS_PROGRAM, "train", "--limit",      "1200",     "--test-limit", "300",
          "--epochs",    "4",     "--seed",       "1",        "--width",      "0.5",
          "--threads",   "1",     "--batch-size", batch_size, "--out",        folder.string()};
}

// With a limit that a busy machine does not reach.
std::vector<std::string> limited(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--time-limit", "60"});
  return arguments;
}

std::vector<std::string> resume(const fs::path& folder) {
  return {TAMIS_PROGRAM, "train", "--resume", folder.string()};
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void run_team(std::size_t size, const std::vector<std::string>& arguments,
              const ScratchFolder& scratch) {
  const std::string output = (scratch / "output").string();
  ProcessTeam team(size, arguments, output);
  for (std::size_t r = 0; r < size; ++r) {
    ASSERT_EQ(team.wait(r, kPatience), 0) << text_of(output + std::to_string(r));
  }
}

// The pruner of the checkpoint, whatever its name.
Pruner saved_pruner(const fs::path& folder) {
  const auto index = runs::read_json(folder / "checkpoint.json");
  return Pruner::from_file(folder / index.at("pruner").get<std::string>());
}

TEST(TeamProgram, TrainsLikeOneProcess) {
  const ScratchFolder scratch;
  std::vector<double> accuracies;
  for (const std::size_t size : {1U, 2U}) {
    const fs::path folder = scratch / std::to_string(size);
    run_team(size, limited(train(folder)), scratch);
    const auto metrics = runs::read_run(folder).epochs;
    ASSERT_EQ(metrics.size(), 4U);
    EXPECT_EQ(metrics[0].samples, 1200U);
    EXPECT_EQ(metrics[0].steps, 25U);
    EXPECT_GT(metrics[2].pruned, 100U);
    accuracies.push_back(metrics.back().values.at("test_accuracy"));
    EXPECT_EQ(saved_pruner(folder).num_scored(), 1200U);
    EXPECT_EQ(runs::read_json(folder / "config.json").at("environment").at("processes"), size);
  }
  EXPECT_THAT(text_of(scratch / "output1"), testing::IsEmpty()) << "rank 0 alone reports";
  // 300 test samples: a difference of 12 points is four standard deviations.
  EXPECT_NEAR(accuracies[0], accuracies[1], 0.12);
  EXPECT_GT(accuracies[1], 0.55);
}

TEST(TeamProgram, IsResumedByAnotherNumberOfProcesses) {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "run";
  const std::string output = (scratch / "output").string();
  {
    ProcessTeam team(2, limited(train(folder)), output);
    // Killed while it trains its third epoch, or a little later.
    for (int k = 0; k < 24'000; ++k) {
      if (fs::exists(folder / "metrics.jsonl") && runs::read_run(folder).epochs.size() >= 2) break;
      std::this_thread::sleep_for(milliseconds(10));
    }
    team.kill(1, SIGKILL);
    EXPECT_EQ(team.wait(1, kPatience), -SIGKILL);
    // The connection is gone, so rank 0 need not wait for the time limit.
    const int code = team.wait(0, milliseconds(40'000));
    if (code != 0) {
      EXPECT_THAT(text_of(output + "0"), HasSubstr("rank 1"));
    }
  }
  const Pruner before = saved_pruner(folder);
  const std::size_t num_done = runs::read_run(folder).epochs.size();
  EXPECT_GE(num_done, 2U);
  run_team(3, limited(resume(folder)), scratch);
  const auto metrics = runs::read_run(folder).epochs;
  ASSERT_EQ(metrics.size(), 4U);
  if (num_done < 4) {
    // The next epoch is what any number of processes makes of the saved scores.
    EXPECT_EQ(metrics[num_done].pruned, before.preview(num_done).num_pruned());
  }
}

TEST(TeamProgram, RefusesOtherSettingsOnEveryRank) {
  const ScratchFolder scratch;
  const std::string output = (scratch / "output").string();
  // The seed is the rank.
  const std::string script = "exec " TAMIS_PROGRAM
                             " train --limit 300 --epochs 2 --batch-size 10 "
                             "--threads 1 --seed $RANK --out " +
                             (scratch / "run").string();
  ProcessTeam team(2, {"/bin/sh", "-c", script}, output);
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(team.wait(r, kPatience), 1);
    EXPECT_THAT(text_of(output + std::to_string(r)),
                HasSubstr("rank 1 has seed 1 and rank 0 has seed 0"));
  }
}

TEST(TeamProgram, RefusesABatchThatCannotBeShared) {
  const ScratchFolder scratch;
  const std::string output = (scratch / "output").string();
  ProcessTeam team(2, limited(train(scratch / "run", "33")), output);
  for (std::size_t r = 0; r < 2; ++r) EXPECT_NE(team.wait(r, kPatience), 0);
  EXPECT_THAT(text_of(output + "0"),
              HasSubstr("batch_size must be a multiple of the number of processes (2), got 33"));
}

// One rank of a team of two whose other rank never comes.
std::vector<std::string> lonely(int rank, int port, const ScratchFolder& scratch,
                                const std::string& time_limit) {
  std::string script = "WORLD_SIZE=2 RANK=" + std::to_string(rank) +
                       " MASTER_PORT=" + std::to_string(port) + " exec";
  for (const std::string& argument : train(scratch / "run")) script += " " + argument;
  return {"/bin/sh", "-c", script + " --time-limit " + time_limit};
}

// The local addresses that listen at a port, as the kernel writes them: "0100007F" is 127.0.0.1.
std::vector<std::string> listeners(int port) {
  std::vector<std::string> addresses;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string number, local, remote, state;
      fields >> number >> local >> remote >> state;
      const std::size_t colon = local.find(':');
      if (state != "0A" || std::stoi(local.substr(colon + 1), nullptr, 16) != port) continue;
      addresses.push_back(local.substr(0, colon));
    }
  }
  return addresses;
}

// Nobody on the network can reach a team that is on one machine.
TEST(TeamProgram, ListensAtTheAddressThatItIsGiven) {
  const ScratchFolder scratch;
  const int port = test::free_port();
  const ProcessTeam team(1, lonely(0, port, scratch, "120"), (scratch / "output").string());
  std::vector<std::string> addresses;
  for (int k = 0; k < 12'000 && addresses.empty(); ++k) {
    std::this_thread::sleep_for(milliseconds(10));
    addresses = listeners(port);
  }
  EXPECT_THAT(addresses, ::testing::ElementsAre("0100007F")) << text_of(scratch / "output0");
}

// Without lines of torch's own before it.
TEST(TeamProgram, SaysInOneLineThatARankIsMissing) {
  for (const int rank : {0, 1}) {
    const ScratchFolder scratch;
    const std::string output = (scratch / "output").string();
    ProcessTeam team(1, lonely(rank, test::free_port(), scratch, "2"), output);
    EXPECT_EQ(team.wait(0, kPatience), 1);
    EXPECT_THAT(
        text_of(output + "0"),
        ::testing::MatchesRegex(rank == 0 ? "tamis: rank 0: rank 1 of 2 did not come[^\n]*\n"
                                          : "tamis: rank 1: rank 0 did not[^\n]*\n"));
  }
}

// A rank sees its own batches only.
TEST(TeamProgram, RefusesAGallery) {
  const ScratchFolder scratch;
  const std::string output = (scratch / "output").string();
  std::vector<std::string> arguments = train(scratch / "run");
  arguments.emplace_back("--gallery");
  ProcessTeam team(2, arguments, output);
  for (std::size_t r = 0; r < 2; ++r) EXPECT_NE(team.wait(r, kPatience), 0);
  EXPECT_THAT(text_of(output + "0"),
              HasSubstr("number of processes must be 1 for a run with a gallery, got 2"));
}

}  // namespace tamis::training::team_test
