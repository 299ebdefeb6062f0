// Files that are not what they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/program.h"

namespace tamis::test {
namespace {

using testing::HasSubstr;

struct BadText {
  std::string text;
  std::string message;
};

std::string trace_with(const std::string& num_samples, const std::string& batches,
                       const std::string& losses) {
  return "{\"num_samples\": " + num_samples + ", \"batches\": " + batches +
         ", \"losses\": " + losses + "}";
}

TEST(BadTrace, IsRefusedWithTheEntryTheRuleAndTheValue) {
  const TextFolder folder;
  const std::vector<BadText> cases = {
      {"", "must be JSON, got an empty file"},
      {" \n", "must be JSON, got an empty file"},
      {"[]", "the document must be an object with the key \"num_samples\", got an array of 0"},
      {"{}", "the key \"num_samples\" is missing"},
      {R"({"num_samples": 3, "losses": []})", "the key \"batches\" is missing"},
      {R"({"num_samples": 3, "batches": []})", "the key \"losses\" is missing"},
      {trace_with("0", "[]", "[]"), "num_samples must be a whole number in [1, 4294967295], got 0"},
      {trace_with("-3", "[]", "[]"), "got -3"},
      {trace_with("2.5", "[]", "[]"), "got 2.5"},
      {trace_with("\"3\"", "[]", "[]"), "got \"3\""},
      {trace_with("null", "[]", "[]"), "got null"},
      {trace_with("NaN", "[]", "[]"), "got null"},
      {trace_with("Infinity", "[]", "[]"), "got Infinity"},
      {trace_with("1e20", "[]", "[]"), "got 1e+20"},
      {trace_with("4294967296", "[]", "[]"), "got 4294967296"},
      {trace_with("3", "{}", "[]"), "batches must be an array, got an object"},
      {trace_with("3", "[]", "7"), "losses must be an array, got 7"},
      {trace_with("3", "[[0]]", "[]"), "losses must be as many as batches (1), got 0"},
      {trace_with("3", "[]", "[1]"), "losses must be as many as batches (0), got 1"},
      {trace_with("3", "[[0], []]", "[1, 1]"), "batches[1] must be an array of at least one index"},
      {trace_with("3", "[0]", "[1]"), "batches[0] must be an array of at least one index, got 0"},
      {trace_with("3", "[[0, -1]]", "[1]"),
       "batches[0][1] must be a whole number in [0, 3), got -1"},
      {trace_with("3", "[[0, 3]]", "[1]"), "batches[0][1] must be a whole number in [0, 3), got 3"},
      {trace_with("3", "[[0.5]]", "[1]"), "got 0.5"},
      {trace_with("3", "[[true]]", "[1]"), "got true"},
      {trace_with("3", "[[[0]]]", "[1]"), "got an array of 1"},
      {trace_with("3", "[[4294967296]]", "[1]"), "got 4294967296"},
      {trace_with("3", "[[18446744073709551616]]", "[1]"), "got 1.8446744073709552e+19"},
      {trace_with("3", "[[0, 1]]", "[[1, 2, 3]]"),
       "losses[0] must have as many entries as batches[0] (2), got 3"},
      {trace_with("3", "[[0]]", "[\"1\"]"), "losses[0] must be a number, null or an array"},
      {trace_with("3", "[[0]]", "[[\"1\"]]"), "losses[0][0] must be a number or null, got \"1\""},
      {trace_with("3", "[[0]]", "[{}]"), "losses[0] must be a number, null or an array"},
      {trace_with("3", "[[0]]", "[1e999]"), "number overflow"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const std::string path = folder.write("trace.json", text);
    EXPECT_THAT(run_refused(1, {"replay", path, "--score", "batch-loss", "--json"}),
                testing::AllOf(HasSubstr("trace.json: "), HasSubstr(message)));
  }
}

TEST(BadTrace, AMeanLossIsTooLittleForSomeScores) {
  const TextFolder folder;
  const std::string path = folder.write("trace.json", trace_with("3", "[[0, 1]]", "[1.5]"));
  EXPECT_THAT(run_refused(1, {"replay", path, "--score", "sample-loss"}),
              HasSubstr("losses[0] must be an array of 2, because score sample-loss needs one loss "
                        "per sample, got 1.5"));
}

TEST(BadTrace, LeavesNoOutputBehind) {
  const TextFolder folder;
  const std::string path = folder.write("trace.json", trace_with("3", "[[0], [3]]", "[1, 1]"));
  folder.write("scores.json", "old");
  run_refused(1, {"replay", path, "--score", "batch-loss", "--out", folder.at("scores.json")});
  EXPECT_EQ(folder.read("scores.json"), "old");
  EXPECT_THAT(folder.names(), testing::ElementsAre("scores.json", "trace.json"));
}

// Every text as a file of scores is refused with its message, and that with `beginning`.
void expect_refused(const std::vector<BadText>& cases, const std::string& beginning) {
  const TextFolder folder;
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const std::string path = folder.write("scores.json", text);
    EXPECT_THAT(run_refused(1, {"plan", "--scores", path, "--policy", "infobatch"}),
                testing::AllOf(HasSubstr(beginning), HasSubstr(message)));
  }
}

TEST(BadScores, AreRefusedWithTheEntryTheRuleAndTheValue) {
  expect_refused(
      {
          {"", "must be JSON, got an empty file"},
          {"[]", "number of scores must be in [1, 4294967295], got 0"},
          {"{\"scores\": []}", "number of scores must be in [1, 4294967295], got 0"},
          {"{}", "the key \"scores\" is missing"},
          {"3", "got 3"},
          {"null", "got null"},
          {"{\"scores\": 3}", "scores must be an array, got 3"},
          {"[1, \"a\"]", "scores[1] must be a finite 32-bit number or null, got \"a\""},
          {"[1, [2]]", "scores[1] must be a finite 32-bit number or null, got an array of 1"},
          {"[Infinity]", "scores[0] must be a finite 32-bit number or null, got Infinity"},
          {"[1, -Infinity]", "scores[1] must be a finite 32-bit number or null, got -Infinity"},
          {"[1e39]", "scores[0] must be a finite 32-bit number or null, got 1e+39"},
          {"[true]", "got true"},
      },
      "scores.json: ");
}

TEST(BadJson, SyntaxErrorsGiveLineAndColumn) {
  expect_refused(
      {
          {"[1, 2", "line 1, column 6"},
          {"[1,\n 2,\n 3 4]", "line 3, column 4"},
          {"[NaN, NaN, x]", "line 1, column 12"},
          {"[Infinity, -Infinity, x]", "line 1, column 23"},
          {"[NaN,\n NaN, x]", "line 2, column 7"},
          {"[1] trailing", "line 1, column 7"},
          {"{\"scores\": [1, 2}", "line 1, column 17"},
          {"[1, nan]", "line 1, column 6"},
          {"\xff\xfe", "line 1, column 1"},
      },
      "scores.json: not valid JSON at ");
}

TEST(BadJson, CutOrNoisyTextNeverCrashes) {
  const TextFolder folder;
  const std::string good = trace_with("9", "[[0, 1], [2, 8]]", "[1.5, [NaN, -2e3]]");
  std::mt19937 random(11);
  for (int k = 0; k < 150; ++k) {
    std::string text = good;
    for (int n = 0; n < 3; ++n) text[random() % text.size()] = static_cast<char>(random() % 256);
    if (k % 2 == 0) text.resize(random() % text.size());
    const std::string path = folder.write("trace.json", text);
    const Outcome outcome = run({"replay", path, "--score", "batch-loss", "--json"});
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << outcome.code << " " << text;
    EXPECT_EQ(outcome.err.empty(), outcome.code == 0) << text;
  }
}

TEST(BadJson, DeepNestingIsRefused) {
  const TextFolder folder;
  const std::string path = folder.write("deep.json", std::string(1'000'000, '['));
  EXPECT_THAT(run_refused(1, {"plan", "--scores", path, "--policy", "none"}),
              HasSubstr("JSON must not be deeper than 200"));
  const std::string closed = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(
      run_refused(1, {"plan", "--scores", folder.write("deep.json", closed), "--policy", "none"}),
      HasSubstr("must not be deeper than 200"));
}

TEST(BadFile, MissingDirectoryOrUnreadable) {
  const TextFolder folder;
  EXPECT_THAT(run_refused(1, {"replay", folder.at("missing"), "--score", "batch-loss"}),
              HasSubstr("missing: cannot open: No such file or directory"));
  EXPECT_THAT(run_refused(1, {"replay", folder.path().string(), "--score", "batch-loss"}),
              HasSubstr("holds no recording"));
  EXPECT_THAT(run_refused(1, {"plan", "--scores", folder.path().string(), "--policy", "none"}),
              HasSubstr("cannot read: Is a directory"));
  EXPECT_THAT(run_refused(1, {"plan", "--scores", "/dev/null", "--policy", "none"}),
              HasSubstr("/dev/null: must be JSON, got an empty file"));
}

}  // namespace
}  // namespace tamis::test
