#include "runs/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "runs/run.h"
#include "support/scratch_folder.h"

namespace tamis::runs {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Existing = RunFolder::Existing;

void make_run(const fs::path& path) {
  const auto folder = RunFolder::create(path, Existing::refuse);
  folder.write_config({{"format", kRunFormat}, {"format_version", kRunVersion}});
}

void touch(const fs::path& path) { std::ofstream(path) << "x"; }

TEST(RunFolder, IsCreatedWithItsParents) {
  const test::ScratchFolder scratch;
  const auto folder = RunFolder::create(scratch.path() / "a" / "b", Existing::refuse);
  EXPECT_TRUE(fs::is_directory(folder.path()));
  EXPECT_FALSE(is_run(folder.path()));
}

TEST(RunFolder, ARunIsNotReplacedUnlessAsked) {
  const test::ScratchFolder scratch;
  make_run(scratch / "run");
  EXPECT_THAT([&] { RunFolder::create(scratch / "run", Existing::refuse); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("--resume"), HasSubstr("--overwrite"), HasSubstr("--out"))));
  EXPECT_TRUE(is_run(scratch / "run"));
}

TEST(RunFolder, OverwritingRemovesOnlyWhatRunsWrite) {
  const test::ScratchFolder scratch;
  make_run(scratch / "run");
  for (const char* name : {"metrics.jsonl", "checkpoint.json", "checkpoint-7.pt",
                           "pruner.safetensors.tmp-1-2", "notes.txt"}) {
    touch(scratch / "run" / name);
  }
  const auto folder = RunFolder::create(scratch / "run", Existing::overwrite);
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(RunFolder, AFolderWithOtherThingsIsNeverTouched) {
  const test::ScratchFolder scratch;
  touch(scratch / "notes.txt");
  for (const auto existing : {Existing::refuse, Existing::overwrite}) {
    EXPECT_THAT([&] { RunFolder::create(scratch.path(), existing); },
                ThrowsMessage<std::runtime_error>(HasSubstr("not empty")));
    EXPECT_THAT([&] { RunFolder::create(scratch / "notes.txt", existing); },
                ThrowsMessage<std::runtime_error>(HasSubstr("got a file")));
  }
  EXPECT_TRUE(fs::exists(scratch / "notes.txt"));
}

TEST(RunFolder, OneProcessAtATime) {
  const test::ScratchFolder scratch;
  make_run(scratch / "run");
  {
    const auto first = RunFolder::open(scratch / "run");
    EXPECT_THAT([&] { RunFolder::open(scratch / "run"); },
                ThrowsMessage<std::runtime_error>(HasSubstr("another process")));
  }
  EXPECT_NO_THROW(RunFolder::open(scratch / "run"));
}

TEST(RunFolder, OpeningNeedsARun) {
  const test::ScratchFolder scratch;
  EXPECT_THAT([&] { RunFolder::open(scratch.path()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("holds no run")));
}

}  // namespace
}  // namespace tamis::runs
