// A disk that is full when a run writes: it stops with one sentence, leaves nothing half-written,
// and goes on as if nothing had happened when there is space again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runs/run.h"
#include "support/file_size_limit.h"
#include "support/scratch_folder.h"
#include "support/tiny_run.h"
#include "tamis/recording.h"

namespace tamis::training::full_disk_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

RunConfig config_with_record() {
  RunConfig config = test::tiny_config();
  config.num_recorded = 40;
  return config;
}

std::set<std::string> names_below(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    names.insert(fs::relative(entry.path(), folder).native());
  }
  return names;
}

void expect_same_run(const fs::path& whole, const fs::path& run) {
  EXPECT_EQ(names_below(run), names_below(whole));
  for (const std::string& name : names_below(whole)) {
    if (!name.ends_with(".safetensors")) continue;
    EXPECT_EQ(test::read_bytes(run / name), test::read_bytes(whole / name)) << name;
  }
  EXPECT_EQ(test::timeless(runs::read_run(run).epochs),
            test::timeless(runs::read_run(whole).epochs));
}

Trainer start_or_resume(const fs::path& path) {
  if (runs::is_run(path)) return test::resume(path);
  return test::start(config_with_record(), path);
}

// The name of the file in "folder/checkpoint-2.safetensors: cannot write ...", without its number.
std::string file_in(const std::string& message) {
  const std::string path = message.substr(0, message.find(": "));
  std::string name = fs::path(path).filename().native();
  std::erase_if(name, [](unsigned char c) { return std::isdigit(c) != 0; });
  return name;
}

TEST(FullDisk, StopsARunWithOneSentenceAndLosesNothing) {
  const test::ScratchFolder scratch;
  {
    Trainer trainer = test::start(config_with_record(), scratch / "whole");
    ASSERT_EQ(test::run_quietly(trainer), Outcome::finished);
  }
  std::set<std::string> stopped_at;
  bool has_space = false;
  for (rlim_t limit = 64; !has_space; limit += limit / 2) {
    const fs::path run = scratch / ("run" + std::to_string(limit));
    std::string message;
    try {
      const test::FileSizeLimit full(limit);
      Trainer trainer = start_or_resume(run);
      test::run_quietly(trainer);
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    for (const std::string& name : names_below(run)) EXPECT_THAT(name, Not(HasSubstr(".tmp-")));
    has_space = message.empty();
    if (!has_space) {
      EXPECT_THAT(message, AllOf(HasSubstr(run.native()), HasSubstr("File too large"),
                                 Not(HasSubstr("\n"))));
      stopped_at.insert(file_in(message));
      Trainer trainer = start_or_resume(run);
      EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
    }
    expect_same_run(scratch / "whole", run);
    fs::remove_all(run);
  }
  // Otherwise the limits were the wrong ones, and the test has shown nothing.
  EXPECT_THAT(stopped_at, ::testing::IsSupersetOf(
                              {"config.json", "samples.safetensors", "checkpoint-.safetensors"}));
}

// No part of a checkpoint fits, and the one before still loads.
TEST(FullDisk, LeavesTheCheckpointBefore) {
  const test::ScratchFolder scratch;
  {
    Trainer trainer = test::start(config_with_record(), scratch / "run");
    test::run_quietly(trainer, test::stop_after(12));
  }
  const auto before = names_below(scratch / "run");
  for (const rlim_t limit : {0, 100, 4096}) {
    const test::FileSizeLimit full(limit);
    const auto save = [&] {
      Trainer trainer = test::resume(scratch / "run");
      test::run_quietly(trainer, test::stop_after(1));
    };
    EXPECT_THAT(save, ThrowsMessage<std::runtime_error>(HasSubstr("File too large"))) << limit;
  }
  for (const std::string& name : before) EXPECT_TRUE(fs::exists(scratch / "run" / name)) << name;
  EXPECT_NO_THROW(Recording(scratch / "run" / "record").read([](const RecordedStep&) {}));
  Trainer trainer = test::resume(scratch / "run");
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
}

}  // namespace tamis::training::full_disk_test
