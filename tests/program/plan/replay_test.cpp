#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/program.h"
#include "tamis/registry.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kTrace = R"({"num_samples": 5, "batches": [[0, 1], [1, 2], [2, 0]],
                                   "losses": [1.0, 2.0, 4.0]})";

TEST(Replay, WritesTheScoresWithNullWhereUnscored) {
  const TextFolder folder;
  const std::string trace = folder.write("trace.json", kTrace);
  const json out = run_json({"replay", trace, "--score", "last-batch-loss", "--json"});
  EXPECT_EQ(out, json::parse(R"({"scores": [4.0, 2.0, 4.0, null, null], "num_scored": 3,
                                 "num_skipped_observations": 0})"));
}

TEST(Replay, ScoresReadBackAsTheSameFloats) {
  const TextFolder folder;
  json trace = {{"num_samples", 400}, {"batches", json::array()}, {"losses", json::array()}};
  std::mt19937 random(1);
  std::vector<float> expected;
  for (int i = 0; i < 400; ++i) {
    expected.push_back(std::exp(std::normal_distribution<float>(0.0F, 20.0F)(random)));
    trace["batches"].push_back({i});
    trace["losses"].push_back(expected.back());
  }
  const std::string path = folder.write_json("trace.json", trace);
  const json out = run_json({"replay", path, "--score", "last-batch-loss", "--json"});
  EXPECT_EQ(out["scores"].get<std::vector<float>>(), expected);
}

TEST(Replay, TakesOneLossPerSample) {
  const TextFolder folder;
  const std::string trace = folder.write(
      "trace.json",
      R"({"num_samples": 3, "batches": [[2, 0], [1, 2]], "losses": [[5, 1], [3, 4]]})");
  const json own = run_json({"replay", trace, "--score", "sample-loss", "--json"});
  EXPECT_EQ(own["scores"], json::parse("[1.0, 3.0, 4.0]"));
  const json mean = run_json({"replay", trace, "--score", "last-batch-loss", "--json"});
  EXPECT_EQ(mean["scores"], json::parse("[3.0, 3.5, 3.5]"));
}

TEST(Replay, SkipsAndCountsLossesThatAreNotFinite) {
  const TextFolder folder;
  const std::string trace = folder.write("trace.json", R"({"num_samples": 4,
    "batches": [[0], [1], [2], [3], [0, 1], [0], [1]],
    "losses": [2.5, NaN, Infinity, -Infinity, [1.0, NaN], null, 1e39], "note": "NaN \" Infinity"})");
  const json out = run_json({"replay", trace, "--score", "batch-loss", "--json"});
  EXPECT_EQ(out["scores"], json::parse("[2.5, null, null, null]"));
  EXPECT_EQ(out["num_skipped_observations"], 6);
}

TEST(Replay, AnEmptyLossCountsAsSkippedForAScoreThatNeedsLosses) {
  const TextFolder folder;
  const std::string trace = folder.write(
      "trace.json", R"({"num_samples": 2, "batches": [[0, 1], [0, 1]], "losses": [null, [1, 2]]})");
  const json out = run_json({"replay", trace, "--score", "sample-loss", "--json"});
  EXPECT_EQ(out["scores"], json::parse("[1.0, 2.0]"));
  EXPECT_EQ(out["num_skipped_observations"], 1);
}

TEST(Replay, NegativeLossesAreScoredOrSkippedAsTheScoreSays) {
  const TextFolder folder;
  const std::string trace = folder.write(
      "trace.json", R"({"num_samples": 2, "batches": [[0], [1]], "losses": [-2.5, 1.5]})");
  const json average = run_json({"replay", trace, "--score", "last-batch-loss", "--json"});
  EXPECT_EQ(average["scores"], json::parse("[-2.5, 1.5]"));
  const json reconstruction = run_json({"replay", trace, "--score", "reconstruction", "--json"});
  EXPECT_EQ(reconstruction["scores"][0], nullptr);
  EXPECT_EQ(reconstruction["num_skipped_observations"], 1);
}

TEST(Replay, AnIndexThatStandsTwiceIsAppliedOnce) {
  const TextFolder folder;
  const std::string once = folder.write(
      "once.json", R"({"num_samples": 2, "batches": [[0], [0, 1]], "losses": [1, 3]})");
  const std::string twice = folder.write(
      "twice.json", R"({"num_samples": 2, "batches": [[0], [0, 0, 1, 0]], "losses": [1, 3]})");
  EXPECT_EQ(run_json({"replay", once, "--score", "batch-loss", "--json"}),
            run_json({"replay", twice, "--score", "batch-loss", "--json"}));
}

TEST(Replay, InitTakesAWordOrANumber) {
  const TextFolder folder;
  const std::string trace =
      folder.write("trace.json", R"({"num_samples": 1, "batches": [[0]], "losses": [2]})");
  const auto score = [&](const std::string& init) -> double {
    return run_json({"replay", trace, "--score", "batch-loss", "--alpha", "0.5", "--init", init,
                     "--json"})["scores"][0];
  };
  EXPECT_EQ(score("zero"), 1.0);
  EXPECT_EQ(score("first-batch-loss"), 2.0);
  EXPECT_EQ(score("4"), 3.0);
  EXPECT_EQ(score("-2"), 0.0);
  EXPECT_EQ(score("1e1"), 6.0);
}

TEST(Replay, EveryRegisteredScoreCanBeReplayed) {
  const TextFolder folder;
  const std::string trace =
      folder.write("trace.json",
                   R"({"num_samples": 3, "batches": [[0, 1], [1, 2]], "losses": [[1, 2], [3, 4]],
          "norms": [[1, 2], [3, 4]]})");
  for (const ScorerInfo& score : registered_scorers()) {
    const std::string name(score.name);
    EXPECT_EQ(run_json({"replay", trace, "--score", name, "--json"})["num_scored"], 3) << name;
  }
}

TEST(Replay, SharesTheMeanLossOutByTheNorms) {
  const TextFolder folder;
  const auto replay = [&](const std::string& losses, const std::string& norms) {
    const std::string trace =
        folder.write("trace.json", R"({"num_samples": 3, "batches": [[0, 1], [1, 2]], "losses": )" +
                                       losses + norms + "}");
    return run({"replay", trace, "--score", "output-gradient", "--json"});
  };
  for (const char* losses : {"[2, 3]", "[[1, 3], [4, 2]]"}) {
    const Outcome outcome = replay(losses, R"(, "norms": [[3, 1], [1, 2]])");
    EXPECT_EQ(json::parse(outcome.out)["scores"], (json{3.0, 2.0, 4.0})) << outcome.err;
  }
  const Outcome skipped = replay("[null, 3]", R"(, "norms": [[3, 1], [null, 2]])");
  EXPECT_EQ(json::parse(skipped.out)["num_skipped_observations"], 2) << skipped.err;
  EXPECT_THAT(replay("[2, 3]", "").err,
              HasSubstr("norms[0] must be an array of 2, because score output-gradient needs the "
                        "norm of each output's gradient; it is missing"));
  EXPECT_THAT(replay("[2, 3]", R"(, "norms": [[3, 1]])").err,
              HasSubstr("norms must be as many as batches (2), got 1"));
  EXPECT_THAT(replay("[2, 3]", R"(, "norms": [[3, 1], [1]])").err,
              HasSubstr("norms[1] must have as many entries as batches[1] (2), got 1"));
}

TEST(Replay, OutGetsTheJsonAndStandardOutputTheSummary) {
  const TextFolder folder;
  const std::string trace = folder.write("trace.json", kTrace);
  folder.write("scores.json", "an older file");
  const Outcome outcome =
      run({"replay", trace, "--score", "last-batch-loss", "--out", folder.at("scores.json")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("3 of 5"));
  EXPECT_THAT(outcome.out, HasSubstr("Histogram"));
  EXPECT_EQ(json::parse(folder.read("scores.json"))["num_scored"], 3);
  EXPECT_THAT(folder.names(), testing::ElementsAre("scores.json", "trace.json"));
}

TEST(Replay, OutDoesNotReplaceALinkOrADevice) {
  const TextFolder folder;
  const std::string trace = folder.write("trace.json", kTrace);
  folder.write("target.json", "");
  std::filesystem::create_symlink("target.json", folder.at("link.json"));
  const Arguments arguments = {"replay", trace, "--score", "last-batch-loss", "--out"};
  const auto with_out = [&](const std::string& out) {
    Arguments all = arguments;
    all.push_back(out);
    return all;
  };
  EXPECT_EQ(run(with_out(folder.at("link.json"))).code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.at("link.json")));
  EXPECT_EQ(json::parse(folder.read("target.json"))["num_scored"], 3);
  EXPECT_EQ(run(with_out("/dev/null")).code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(json::parse(run(with_out("-")).out)["num_scored"], 3);
}

TEST(Replay, WithoutOutAPipeGetsTheJson) {
  const TextFolder folder;
  const std::string trace = folder.write("trace.json", kTrace);
  const Arguments arguments = {"replay", trace, "--score", "last-batch-loss"};
  EXPECT_EQ(run_json(arguments)["num_scored"], 3);
}

TEST(Replay, ReadsStandardInput) {
  const json out =
      run_json({"replay", "-", "--score", "last-batch-loss", "--json"}, {.input = kTrace});
  EXPECT_EQ(out["num_scored"], 3);
}

TEST(Replay, ATraceWithoutBatchesLeavesAllUnscored) {
  const json out = run_json({"replay", "-", "--score", "batch-loss", "--json"},
                            {.input = R"({"num_samples": 2, "batches": [], "losses": []})"});
  EXPECT_EQ(out, json::parse(R"({"scores": [null, null], "num_scored": 0,
                                 "num_skipped_observations": 0})"));
}

}  // namespace
}  // namespace tamis::test
