// Exit codes, help, and where the program writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/program.h"
#include "tamis/registry.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

TEST(Usage, PrintsTheVersion) {
  const Outcome outcome = run({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("tamis [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Usage, HelpListsCommandsNamesAndOptions) {
  EXPECT_THAT(run({"--help"}).out, AllOf(HasSubstr("replay"), HasSubstr("plan"),
                                         HasSubstr("inspect"), HasSubstr("simulate")));
  EXPECT_THAT(run({"replay", "--help"}).out,
              AllOf(HasSubstr("TRACE"), HasSubstr("--alpha"), HasSubstr("--init"),
                    HasSubstr("reconstruction"), HasSubstr("Example:")));
  EXPECT_THAT(
      run({"plan", "--help"}).out,
      AllOf(HasSubstr("--prune-ratio"), HasSubstr("--window-scale"), HasSubstr("--epsilon"),
            HasSubstr("--warmup-epochs"), HasSubstr("random-dynamic"), HasSubstr("Example:")));
  EXPECT_THAT(run({"simulate", "--help"}).out,
              AllOf(HasSubstr("--batch-size"), HasSubstr("--alpha"), HasSubstr("--groups"),
                    HasSubstr("Example:")));
  EXPECT_THAT(run({"inspect", "--help"}).out, AllOf(HasSubstr("STATE"), HasSubstr("Example:")));
  for (const char* command : {"replay", "plan", "inspect", "simulate"}) {
    EXPECT_EQ(run({command, "--help"}).code, 0) << command;
  }
}

// The flag of an option, and a value that is its default.
std::pair<std::string, std::string> flag_of(const OptionInfo& option) {
  if (option.name == "initial_score") return {"--init", "first-batch-loss"};
  std::string flag = "--" + std::string(option.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return {flag, json(option.default_value).dump()};
}

TEST(Usage, EveryRegisteredOptionHasAFlag) {
  const Setting trace = {
      .input = R"({"num_samples": 1, "batches": [[0]], "losses": [[2]], "norms": [[1]]})"};
  for (const ScorerInfo& score : registered_scorers()) {
    for (const OptionInfo& option : score.options) {
      const auto [flag, value] = flag_of(option);
      SCOPED_TRACE(flag);
      EXPECT_THAT(run({"replay", "--help"}).out, HasSubstr(flag + " "));
      const Arguments plain = {"replay", "-", "--score", std::string(score.name)};
      Arguments given = plain;
      given.insert(given.end(), {flag, value});
      EXPECT_EQ(run_json(given, trace), run_json(plain, trace));
    }
  }
  for (const PolicyInfo& policy : registered_policies()) {
    for (const OptionInfo& option : policy.options) {
      const auto [flag, value] = flag_of(option);
      SCOPED_TRACE(flag);
      EXPECT_THAT(run({"plan", "--help"}).out, HasSubstr(flag + " "));
      const Arguments plain = {"plan",  "--scores", "-", "--policy", std::string(policy.name),
                               "--json"};
      Arguments given = plain;
      given.insert(given.end(), {flag, value});
      EXPECT_EQ(run_json(given, {.input = "[1, 2, 3, 4]"}),
                run_json(plain, {.input = "[1, 2, 3, 4]"}));
    }
  }
}

struct Mistake {
  Arguments arguments;
  std::string message;
};

TEST(Usage, EveryMistakeExitsWith2AndSaysWhat) {
  const TextFolder folder;
  const std::string scores = folder.write("scores.json", "[1, 2, 3]");
  const std::string trace =
      folder.write("trace.json", R"({"num_samples": 1, "batches": [[0]], "losses": [2]})");
  const Arguments replay = {"replay", trace, "--score"};
  const Arguments plan = {"plan", "--scores", scores, "--policy"};
  const auto with = [](Arguments all, const Arguments& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<Mistake> mistakes = {
      {{}, "a command is required: replay, plan, inspect, simulate"},
      {{"explain"}, "command must be one of replay, plan, inspect, simulate"},
      {{"explain"}, "got explain"},
      {{"--frobnicate"}, "got --frobnicate"},
      {{"replay"}, "TRACE is required"},
      {{"replay", trace}, "--score is required"},
      {{"plan", "--scores", scores}, "--policy is required"},
      {{"inspect"}, "STATE is required"},
      {{"inspect", "a", "b"}, "not expected: b"},
      {with(plan, {"infobatch", "--frobnicate", "3"}), "--frobnicate"},
      {with(replay, {"loss"}), "score must be one of batch-loss, last-batch-loss"},
      {with(plan, {"best"}), "policy must be one of none, random"},
      {with(replay, {"batch-loss", "--alpha", "1"}), "alpha must be in [0, 1)"},
      {with(replay, {"batch-loss", "--alpha", "-0.1"}), "alpha must be in [0, 1), got -0.1"},
      {with(replay, {"batch-loss", "--alpha", "nan"}), "--alpha must be a number, got nan"},
      {with(replay, {"batch-loss", "--alpha", "0.7x"}), "--alpha must be a number, got 0.7x"},
      {with(replay, {"batch-loss", "--alpha", ""}), "--alpha must be a number"},
      {with(replay, {"batch-loss", "--alpha"}), "--alpha"},
      {with(replay, {"batch-loss", "--init", "one"}), "--init must be zero, first-batch-loss or"},
      {with(replay, {"batch-loss", "--init", "inf"}), "--init must be zero, first-batch-loss or"},
      {with(replay, {"last-batch-loss", "--alpha", "0.5"}),
       "--alpha is not an option of score last-batch-loss (which has none)"},
      {with(replay, {"loss-ucb", "--decay", "0"}), "decay must be in (0, 1], got 0"},
      {with(replay, {"loss-ucb", "--confidence", "-1"}), "confidence must be"},
      {with(replay, {"reconstruction", "--step", "1.5"}), "step must be in (0, 1], got 1.5"},
      {with(plan, {"infobatch", "--prune-ratio", "0.91"}), "prune_ratio must be in [0, 0.9]"},
      {with(plan, {"random", "--prune-ratio", "1"}), "prune_ratio must be in [0, 1), got 1"},
      {with(plan, {"infobatch", "--groups", "4"}),
       "--groups is not an option of policy infobatch (which has --prune-ratio)"},
      {with(plan, {"seta", "--groups", "0"}), "groups must be a whole number in [1, 1000], got 0"},
      {with(plan, {"seta", "--groups", "2.5"}), "groups must be a whole number"},
      {with(plan, {"seta", "--groups", "1e300"}), "groups must be a whole number"},
      {with(plan, {"seta", "--window-scale", "0"}), "window_scale must be in (0, 1], got 0"},
      {with(plan, {"epsilon-greedy", "--epsilon", "2"}), "epsilon must be in [0, 1], got 2"},
      {with(plan, {"trim", "--warmup-epochs", "-1"}), "warmup_epochs must be a whole number"},
      {with(plan, {"infobatch", "--epoch", "100"}),
       "--epoch must be below --epochs (100), got 100"},
      {with(plan, {"infobatch", "--epoch", "-1"}), "--epoch must be a whole number of at least 0"},
      {with(plan, {"infobatch", "--epochs", "0"}), "--epochs must be a whole number of at least 1"},
      {with(plan, {"infobatch", "--delta", "1.01"}), "--delta must be in [0, 1], got 1.01"},
      {with(plan, {"infobatch", "--delta", "-0"}), ""},
      {with(plan, {"infobatch", "--seed", "0.5"}), "--seed must be a whole number"},
      {with(plan, {"infobatch", "--seed", "18446744073709551616"}), "--seed must be"},
      {{"simulate", "--samples", "0"},
       "--samples must be a whole number in [1, 10000000000], got 0"},
      {{"simulate", "--samples", "4294967296"}, "got 4294967296"},
      {{"simulate", "--samples", "1e20"}, "got 1e20"},
      {{"simulate", "--batch-size", "0"}, "--batch-size must be a whole number"},
      {{"simulate", "--epochs", "0"}, "--epochs must be a whole number in [1, 1000000], got 0"},
      {{"simulate", "--epsilon", "0.5"},
       "--epsilon is not an option of score batch-loss (which has --alpha, --init) or policy "
       "infobatch (which has --prune-ratio)"},
  };
  for (const auto& [arguments, message] : mistakes) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    if (message.empty()) {
      EXPECT_EQ(run(arguments).code, 0);
    } else {
      EXPECT_THAT(run_refused(2, arguments), HasSubstr(message));
    }
  }
}

TEST(Usage, AMistakeIsFoundBeforeAnyFileIsRead) {
  EXPECT_THAT(run_refused(2, {"replay", "missing.json", "--score", "batch-loss", "--alpha", "7"}),
              HasSubstr("alpha"));
  EXPECT_THAT(
      run_refused(2, {"plan", "--scores", "missing.json", "--policy", "seta", "--epoch", "100"}),
      HasSubstr("--epoch"));
}

TEST(Usage, MessagesStayOnOneLine) {
  EXPECT_THAT(run_refused(1, {"inspect", "no\nsuch\tfile"}), HasSubstr("no such file: "));
}

TEST(Streams, AClosedOutputIsAFailure) {
  const TextFolder folder;
  const std::string trace =
      folder.write("trace.json", R"({"num_samples": 1, "batches": [[0]], "losses": [2]})");
  const Setting closed = {.close_output = true};
  EXPECT_THAT(run_refused(1, {"--help"}, closed), HasSubstr("standard output"));
  EXPECT_THAT(run_refused(1, {"simulate", "--samples", "10"}, closed),
              HasSubstr("standard output"));
  // The file must not get the number of the closed stream, and its text.
  const Outcome outcome = run(
      {"replay", trace, "--score", "last-batch-loss", "--out", folder.at("scores.json")}, closed);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(json::parse(folder.read("scores.json"))["num_scored"], 1);
}

TEST(Streams, AFullDiskIsAFailure) {
  const TextFolder folder;
  const std::string scores = folder.write("scores.json", "[1, 2, 3]");
  const Setting full = {.output_path = "/dev/full"};
  EXPECT_THAT(run_refused(1, {"--version"}, full), HasSubstr("No space left on device"));
  EXPECT_THAT(run_refused(1, {"plan", "--scores", scores, "--policy", "none", "--json"}, full),
              HasSubstr("No space left on device"));
}

TEST(Streams, AFileSizeLimitLeavesTheOldFile) {
  const TextFolder folder;
  const std::string trace =
      folder.write("trace.json", R"({"num_samples": 10000, "batches": [[0]], "losses": [2]})");
  folder.write("scores.json", "old");
  folder.write("run.safetensors", "old");
  const Setting small = {.file_size_limit = 4096};
  EXPECT_THAT(
      run_refused(1, {"replay", trace, "--score", "batch-loss", "--out", folder.at("scores.json")},
                  small),
      HasSubstr("File too large"));
  const Outcome outcome = run(
      {"simulate", "--samples", "10000", "--epochs", "1", "--save", folder.at("run.safetensors")},
      small);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("File too large"));
  EXPECT_EQ(folder.read("scores.json"), "old");
  EXPECT_EQ(folder.read("run.safetensors"), "old");
  EXPECT_THAT(folder.names(), testing::ElementsAre("run.safetensors", "scores.json", "trace.json"));
}

TEST(Streams, AnOutputThatCannotBeWrittenIsRefusedFirst) {
  const TextFolder folder;
  const std::string trace =
      folder.write("trace.json", R"({"num_samples": 1, "batches": [[0]], "losses": [2]})");
  const Arguments replay = {"replay", trace, "--score", "last-batch-loss", "--out"};
  const auto out = [&](const std::string& path) {
    Arguments all = replay;
    all.push_back(path);
    return all;
  };
  EXPECT_THAT(run_refused(1, out(folder.at("missing/x.json"))), HasSubstr("missing/x.json: "));
  EXPECT_THAT(run_refused(1, out(folder.path().string())), HasSubstr("Is a directory"));
  EXPECT_THAT(run_refused(1, out("/dev/full")), HasSubstr("No space left on device"));
  EXPECT_THAT(run_refused(1, out("/proc/scores.json")), HasSubstr("/proc/scores.json: "));
  EXPECT_THAT(run_refused(1, {"simulate", "--save", folder.at("missing/x")}),
              HasSubstr("missing/x: "));
  EXPECT_THAT(run_refused(1, {"simulate", "--save", "/dev/null"}), HasSubstr("/dev/null: "));
}

}  // namespace
}  // namespace tamis::test
