// A process that is killed while it saves leaves a complete file under the final name, always.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/scratch_folder.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

// State number k of the run that all processes of a test agree on: after k observations.
void observe_next(Pruner& pruner) {
  std::vector<SampleIndex> batch;
  for (std::size_t i = 0; i < 512; ++i) {
    batch.push_back(static_cast<SampleIndex>((i * 7919 + pruner.num_observations() * 104'729) %
                                             pruner.num_samples()));
  }
  pruner.observe(batch, 1.0 + 1.0 / static_cast<double>(1 + pruner.num_observations()));
}

// Writes one byte to `done` after every save.
[[noreturn]] void save_until_killed(Pruner& pruner, const std::filesystem::path& path, int done) {
  try {
    for (;;) {
      observe_next(pruner);
      pruner.save(path);
      if (::write(done, "", 1) != 1) std::_Exit(2);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    std::_Exit(1);
  }
}

// Starts a process that saves, waits for `num_saves` and then for `delay`, and kills it.
// Returns its id, or -1 if it did not live so long.
pid_t kill_while_saving(Pruner& pruner, const std::filesystem::path& path, std::uint64_t num_saves,
                        std::chrono::microseconds delay) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) save_until_killed(pruner, path, ends[1]);
  ::close(ends[1]);
  char byte = 0;
  bool alive = child > 0;
  for (std::uint64_t i = 0; i < num_saves && alive; ++i) alive = ::read(ends[0], &byte, 1) == 1;
  ::close(ends[0]);
  if (child < 0) return -1;
  std::this_thread::sleep_for(delay);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return alive && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? child : -1;
}

struct KillPlan {
  std::size_t num_samples = 0;
  int num_kills = 0;
};

class Kill : public ::testing::TestWithParam<KillPlan> {};

TEST_P(Kill, AtARandomMomentOfASaveLeavesACompleteState) {
  const KillPlan& plan = GetParam();
  const test::ScratchFolder folder;
  const std::filesystem::path path = folder / "run";
  const PrunerOptions options = {
      .num_samples = plan.num_samples, .num_epochs = 2, .score = Spec{"batch-loss"}};
  Pruner found(options);
  const auto start = std::chrono::steady_clock::now();
  found.save(path);
  const auto save_time = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  Pruner expected(options);
  std::mt19937_64 random(plan.num_samples);
  std::set<std::uint64_t> states;
  int num_interrupted_saves = 0;

  for (int kill = 0; kill < plan.num_kills; ++kill) {
    const std::uint64_t num_saves = random() % 3;
    const auto delay = save_time * static_cast<std::int64_t>(random() % 1000) / 1000;
    const pid_t child = kill_while_saving(found, path, num_saves, delay);
    ASSERT_GT(child, 0) << "the process that saves ended by itself";

    ASSERT_NO_THROW(found.load(path)) << "after kill " << kill;
    states.insert(found.num_observations());
    while (expected.num_observations() < found.num_observations()) observe_next(expected);
    ASSERT_TRUE(found.serialize() == expected.serialize()) << "after kill " << kill;
    // What a killed save leaves behind begins with the name of the file.
    for (const std::string& name : folder.names()) {
      if (name == "run") continue;
      ASSERT_TRUE(name.starts_with("run.tmp-" + std::to_string(child) + "-")) << name;
      ++num_interrupted_saves;
      std::filesystem::remove(folder / name);
    }
  }
  // Otherwise the kills came at the wrong moments and the test has shown nothing.
  EXPECT_GE(num_interrupted_saves, plan.num_kills / 10);
  EXPECT_GE(states.size(), 2U);
}

// Through the page cache, and past it (from 32 MiB on).
INSTANTIATE_TEST_SUITE_P(SmallAndLarge, Kill,
                         ::testing::Values(KillPlan{100'000, 300}, KillPlan{9'000'000, 20}),
                         [](const auto& plan) { return std::to_string(plan.param.num_samples); });

}  // namespace
}  // namespace tamis
