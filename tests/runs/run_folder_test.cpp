#include "runs/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

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

TEST(RunFolder, OverwritingKeepsFilesWhoseNamesOnlyBeginLikeOurs) {
  const test::ScratchFolder scratch;
  make_run(scratch / "run");
  const std::vector<std::string> files = {
      "config.json.bak",     "metrics.jsonl.old",        "checkpoint-epoch1-keep.pt", "records.csv",
      "analysis.json.draft", "checkpoint.json.tmp-mine", "pruner-best.safetensors",   "pruner",
      "recording.txt",       "checkpoint-.safetensors",  "checkpoint-1a.safetensors"};
  for (const std::string& name : files) touch(scratch / "run" / name);
  for (const char* const name : {"recordings", "checkpoint_backup", "record"}) {
    fs::create_directory(scratch / "run" / name);
    touch(scratch / "run" / name / "mine");
  }
  touch(scratch / "run" / "record" / "steps-00000.safetensors");
  touch(scratch / "run" / "record" / "steps-notes.safetensors");
  const auto folder = RunFolder::create(scratch / "run", Existing::overwrite);
  for (const std::string& name : files) EXPECT_TRUE(fs::exists(folder / name)) << name;
  for (const char* const name : {"recordings", "checkpoint_backup", "record"}) {
    EXPECT_TRUE(fs::exists(folder.path() / name / "mine")) << name;
  }
  EXPECT_TRUE(fs::exists(folder.path() / "record" / "steps-notes.safetensors"));
  EXPECT_FALSE(fs::exists(folder.path() / "record" / "steps-00000.safetensors"));
  EXPECT_FALSE(is_run(folder.path()));
}

// What is left of a process that was killed while it wrote its first file.
TEST(RunFolder, AFolderWithOnlyAHalfWrittenFileIsAsGoodAsEmpty) {
  const test::ScratchFolder scratch;
  for (const auto existing : {Existing::refuse, Existing::overwrite}) {
    fs::create_directory(scratch / "run");
    touch(scratch / "run" / "config.json.tmp-12-0");
    EXPECT_NO_THROW(RunFolder::create(scratch / "run", existing));
    EXPECT_TRUE(fs::is_empty(scratch / "run"));
    fs::remove(scratch / "run");
  }
}

TEST(RunFolder, OpeningARunRemovesWhatAKilledProcessHadBegun) {
  const test::ScratchFolder scratch;
  make_run(scratch / "run");
  touch(scratch / "run" / "metrics.jsonl.tmp-12-0");
  touch(scratch / "run" / "metrics.jsonl.tmp-copy");
  const auto folder = RunFolder::open(scratch / "run");
  EXPECT_FALSE(fs::exists(folder / "metrics.jsonl.tmp-12-0"));
  EXPECT_TRUE(fs::exists(folder / "metrics.jsonl.tmp-copy"));
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
