// Everything that can go wrong around a state file.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "support/state_victim.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

using test::Bytes;
using test::contains;
using test::make_run;
using test::message_of;
using test::read_bytes;
using test::ScratchFolder;
using test::Victim;
using test::write_bytes;

using Names = std::vector<std::string>;

TEST(StateFile, FilesThatCannotBeReadAreRefusedWithTheirPath) {
  const ScratchFolder folder;
  Victim victim;
  write_bytes(folder / "empty", {});
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto refuse = [&](const std::filesystem::path& path, const std::string& reason) {
    EXPECT_TRUE(contains(victim.refuse_file(path), path.string() + ": " + reason));
  };
  refuse(folder / "empty", "empty, not a safetensors file");
  refuse(folder.path(), "cannot read: a directory");
  refuse(folder / "pipe", "cannot read: not a file");
  refuse(folder / "missing", "cannot open: No such file or directory");
  for (const char* name : {"empty", "missing"}) {
    EXPECT_TRUE(contains(message_of([&] { Pruner::from_file(folder / name); }), name));
  }
}

TEST(StateFile, DamagedFilesAreRefusedByLoadAndByFromFile) {
  const ScratchFolder folder;
  Bytes state = make_run().serialize();
  state[state.size() / 2] ^= std::byte{1};
  write_bytes(folder / "damaged", state);
  const std::string reason = (folder / "damaged").string() + ": the data are damaged in scores";
  EXPECT_TRUE(contains(Victim().refuse_file(folder / "damaged"), reason));
  EXPECT_TRUE(contains(message_of([&] { Pruner::from_file(folder / "damaged"); }), reason));
}

TEST(StateFile, SavingWhereNoFileCanBeFailsAndLeavesNothing) {
  const ScratchFolder folder;
  Pruner pruner = make_run();
  write_bytes(folder / "file", {});
  std::filesystem::create_directory(folder / "sub");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto save_to = [&](const std::filesystem::path& path) {
    return message_of([&] { pruner.save(path); });
  };
  EXPECT_TRUE(contains(save_to(folder / "missing/run"),
                       "missing/run: cannot open its folder: No such file or directory"));
  EXPECT_TRUE(contains(save_to(folder / "file/run"), "Not a directory"));
  for (const char* name : {"sub", "pipe"}) {
    EXPECT_TRUE(contains(save_to(folder / name), "cannot replace it: not a regular file"));
  }
  EXPECT_TRUE(contains(save_to(folder / std::string(250, 'x')), "File name too long"));
  EXPECT_EQ(folder.names(), (Names{"file", "pipe", "sub"}));
}

TEST(StateFile, AFileOfTheTemporaryNameIsNotTouched) {
  const ScratchFolder folder;
  Pruner pruner = make_run();
  const Bytes marker(3, std::byte{7});
  const std::string stem = "run.tmp-" + std::to_string(::getpid()) + "-";
  for (int i = 0; i < 20; ++i) write_bytes(folder / (stem + std::to_string(i)), marker);
  pruner.save(folder / "run");
  EXPECT_EQ(read_bytes(folder / "run"), pruner.serialize());
  EXPECT_EQ(folder.names().size(), 21U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(read_bytes(folder / (stem + std::to_string(i))), marker);
}

// Saves in a child process and prints the message; exits with 0 if there was one.
void save_and_exit(Pruner& pruner, const std::filesystem::path& path) {
  try {
    pruner.save(path);
  } catch (const std::runtime_error& error) {
    std::cerr << error.what() << '\n';
    std::_Exit(0);
  }
  std::_Exit(1);
}

void limit_file_size(rlim_t bytes) {
  const rlimit limit = {bytes, bytes};
  std::signal(SIGXFSZ, SIG_IGN);
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(2);
}

TEST(StateFileDeathTest, AFullDiskFailsTheSaveAndKeepsTheFileBefore) {
  const ScratchFolder folder;
  Pruner pruner = make_run();
  const std::filesystem::path path = folder / "run";
  pruner.save(path);
  const Bytes before = read_bytes(path);
  test::simulate_step(pruner, 1000);
  for (const rlim_t limit : {4096U, 4097U, 100'000U, 170'001U}) {
    EXPECT_EXIT(
        {
          limit_file_size(limit);
          save_and_exit(pruner, path);
        },
        ::testing::ExitedWithCode(0), "run: cannot write the temporary file .*File too large");
    EXPECT_EQ(read_bytes(path), before);
    EXPECT_EQ(folder.names(), Names{"run"});
  }
  EXPECT_NO_THROW(Pruner::from_file(path));
}

// Large enough to bypass the page cache; limits on and off the page boundary.
TEST(StateFileDeathTest, AFullDiskFailsTheSaveOfManySamples) {
  const ScratchFolder folder;
  Pruner pruner({.num_samples = 9'000'000, .num_epochs = 3});
  for (const rlim_t limit : {20'971'520U, 20'000'001U, 36'000'000U}) {
    EXPECT_EXIT(
        {
          limit_file_size(limit);
          save_and_exit(pruner, folder / "run");
        },
        ::testing::ExitedWithCode(0), "File too large");
    EXPECT_EQ(folder.names(), Names{});
  }
}

TEST(StateFileDeathTest, AnUnwritableFolderFailsTheSave) {
  const ScratchFolder folder;
  Pruner pruner = make_run();
  std::filesystem::create_directory(folder / "sealed");
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder / "sealed", std::filesystem::perms(0555));
  EXPECT_EXIT(
      {
        // Nothing is unwritable for root, so be somebody else.
        if (::geteuid() == 0 && ::setuid(65534) != 0) std::_Exit(2);
        save_and_exit(pruner, folder / "sealed/run");
      },
      ::testing::ExitedWithCode(0),
      "sealed/run: cannot create the temporary file.*Permission denied");
}

}  // namespace
}  // namespace tamis
