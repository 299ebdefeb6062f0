// Arguments and files from someone who means no good, or from a script with a mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/program.h"
#include "support/rewritten_state.h"

namespace tamis::test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr rlim_t kMegabyte = rlim_t{1} << 20U;

std::string save_state(const TextFolder& folder) {
  const std::string path = folder.at("state");
  EXPECT_EQ(run({"simulate", "--samples", "64", "--epochs", "2", "--save", path}).code, 0);
  return path;
}

TEST(HostileArguments, ANumberThatIsInfiniteAsAFloatIsRefused) {
  EXPECT_THAT(run_refused(2, {"simulate", "--samples", "100", "--epochs", "3", "--policy",
                              "epsilon-greedy", "--init", "1e308"}),
              HasSubstr("initial_score must be a finite 32-bit number"));
}

TEST(HostileArguments, EmptyPathsDoNotCountAsNotGiven) {
  const Arguments compare = {"compare", "--command", "true", "--methods", "full"};
  for (const char* const flag : {"--out", "--resume"}) {
    Arguments arguments = compare;
    arguments.insert(arguments.end(), {flag, ""});
    EXPECT_THAT(run_refused(2, arguments), HasSubstr(std::string(flag) + " must not be empty"));
  }
  EXPECT_THAT(run_refused(2, {"simulate", "--samples", "10", "--save", ""}),
              HasSubstr("--save must not be empty"));
}

TEST(HostileArguments, SeedsThatDoNotFitAreRefused) {
  const TextFolder folder;
  for (const char* const seed : {"-1", "18446744073709551616", "1.5", "x", ""}) {
    EXPECT_THAT(run_refused(2, {"compare", "--command", "true", "--methods", "full", "--out",
                                folder.at("c"), "--seeds", "0", seed}),
                HasSubstr("--seeds must be whole numbers in [0, 18446744073709551615]"))
        << seed;
  }
  EXPECT_FALSE(fs::exists(folder.at("c")));
}

TEST(HostileArguments, ALayoutNeedsRanks) {
  EXPECT_THAT(run_refused(2, {"simulate", "--samples", "10", "--layout", "sharded"}),
              HasSubstr("--layout goes with --ranks only"));
}

TEST(HostileFile, CannotCommandTheTerminal) {
  const TextFolder folder;
  const std::string path = save_state(folder);
  const auto edited = rewritten(read_bytes(path), [](ContainerParts& parts) {
    // Beside the scores, with a row for each sample.
    parts.tensors.push_back(
        {"\x1b]0;owned\x07 \xc2\x9b"
         "2J",
         "U8",
         {64},
         std::vector<std::byte>(64)});
  });
  write_bytes(path, edited);
  for (const Arguments& arguments : {Arguments{"inspect", path}, {"inspect", path, "--json"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\\u001b]0;owned\\u0007 \\u009b2J"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
  }
  const auto inspected = run_json({"inspect", path, "--json"});
  std::vector<std::string> names;
  for (const auto& array : inspected["arrays"]) {
    names.push_back(array["name"]);
  }
  EXPECT_THAT(names, Contains("\x1b]0;owned\x07 \xc2\x9b"
                              "2J"));
  EXPECT_THAT(run_refused(1, {"inspect", folder.at("\x1b[2J")}), HasSubstr("\\u001b[2J"));
}

TEST(HostileFile, OfAFewKilobytesTakesNoGigabytes) {
  const TextFolder folder;
  const std::string path = save_state(folder);
  const auto edited = rewritten(read_bytes(path), [](ContainerParts& parts) {
    parts.text("num_samples") = "4000000000";
    parts.tensors.clear();
  });
  write_bytes(path, edited);
  EXPECT_THAT(run_refused(1, {"inspect", path}, {.memory_limit = 200 * kMegabyte}),
              HasSubstr("tensor scores is missing"));
}

// Processor time of the children that have ended.
double children_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(HostileFile, OfManyFieldsIsInspectedInTimeThatGrowsWithThem) {
  const TextFolder folder;
  const std::string path = save_state(folder);
  const auto seconds_for = [&](std::size_t count) {
    write_bytes(path, rewritten(read_bytes(path), [&](ContainerParts& parts) {
                  for (std::size_t i = 0; i < count; ++i) {
                    parts.metadata.emplace_back("x" + std::to_string(count + i), "1");
                  }
                }));
    const double before = children_seconds();
    EXPECT_EQ(run({"inspect", path}).code, 0);
    return children_seconds() - before;
  };
  // A lookup per field would take 256 times as long for 16 times as many.
  const double few = seconds_for(10'000);
  EXPECT_LT(seconds_for(160'000), 64.0 * std::max(few, 0.01));
}

// Refused before it is parsed, not ended by the system half-way. (Sanitizers need more address
// space than any limit.)
#ifndef TAMIS_SANITIZED
std::string list_of(const std::string& entry, std::size_t count) {
  std::string text = "[" + entry;
  for (std::size_t i = 1; i < count; ++i) text += "," + entry;
  return text + "]";
}

TEST(HostileFile, OfJsonThatDoesNotFitIntoMemoryIsRefused) {
  const TextFolder folder;
  const std::pair<const char*, std::size_t> lists[] = {{"1", 8'000'000}, {"\"\"", 4'200'000}};
  for (const auto& [entry, count] : lists) {
    folder.write("scores.json", list_of(entry, count));
    EXPECT_THAT(run_refused(1, {"plan", "--scores", folder.at("scores.json"), "--policy", "none"},
                            {.memory_limit = 300 * kMegabyte}),
                HasSubstr("GB of memory, this machine has 0.3"))
        << entry;
  }
}

TEST(HostileFile, OfARunThatDoesNotFitIntoMemoryIsRefused) {
  const TextFolder folder;
  save_state(folder);
  fs::rename(folder / "state", folder / "pruner.safetensors");
  folder.write("config.json", "{}");
  folder.write("samples.json", R"({"format": "tamis-samples", "format_version": 1, "files": )" +
                                   list_of("\"\"", 4'200'000) + "}");
  EXPECT_THAT(
      run_refused(1, {"suspects", folder.path().string()}, {.memory_limit = 300 * kMegabyte}),
      HasSubstr("samples.json needs about 0.4 GB of memory"));
}
#endif

TEST(OutputFile, ALinkStaysAndItsTargetIsReplaced) {
  const TextFolder folder;
  fs::create_directory(folder / "there");
  fs::create_symlink("there/new", folder / "dangling");
  folder.write("there/old", "before");
  fs::create_symlink("there/old", folder / "link");
  fs::create_symlink("link", folder / "link-to-link");
  for (const char* const name : {"dangling", "link-to-link"}) {
    EXPECT_EQ(run({"simulate", "--samples", "64", "--epochs", "2", "--save", folder.at(name)}).code,
              0);
    EXPECT_TRUE(fs::is_symlink(folder / name)) << name;
    EXPECT_EQ(run({"inspect", folder.at(name)}).code, 0) << name;
  }
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / "there" / "new")));
  EXPECT_NE(folder.read("there/old"), "before");
  fs::remove(folder / "there" / "new");
  const std::string trace =
      folder.write("trace.json", R"({"num_samples": 2, "batches": [[0]], "losses": [1]})");
  EXPECT_EQ(run({"replay", trace, "--score", "batch-loss", "--out", folder.at("dangling")}).code,
            0);
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_TRUE(fs::is_regular_file(folder / "there" / "new"));
}

TEST(OutputFile, LinksInACircleAreRefused) {
  const TextFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  EXPECT_THAT(run_refused(1, {"simulate", "--samples", "64", "--save", folder.at("a")}),
              HasSubstr("Too many levels of symbolic links"));
}

}  // namespace
}  // namespace tamis::test
