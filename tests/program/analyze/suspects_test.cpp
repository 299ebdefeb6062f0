// `tamis suspects` on recordings and states of simulated training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kSamples = 320;
constexpr std::size_t kBatch = 16;

class SuspectsCommand : public ::testing::Test {
 protected:
  Pruner make_pruner() const {
    return Pruner({.num_samples = kSamples,
                   .num_epochs = 6,
                   .policy = {.name = "none"},
                   .score = Spec{"batch-loss"},
                   .seed = 4});
  }
  void record(bool is_watched, std::size_t num_recorded = 100) {
    Pruner pruner = make_pruner();
    pruner.record(folder_ / "run/record", {.num_recorded = num_recorded});
    simulate_with_losses(pruner, 6, kBatch, is_watched);
    pruner.save(folder_ / "run/pruner.safetensors");
  }
  std::string folder() const { return folder_.at("run"); }

  TextFolder folder_;
};

TEST_F(SuspectsCommand, FindsTheSamplesWithTheHighestLossesInAWatchedRecording) {
  record(true);
  const json out = run_json({"suspects", folder(), "--top", "20", "--json"});
  EXPECT_EQ(out["score"]["name"], "output-gradient");
  EXPECT_EQ(out["num_scored"], kSamples);
  EXPECT_EQ(out["epochs"].size(), 6U);
  ASSERT_EQ(out["suspects"].size(), 20U);
  std::vector<float> losses;
  for (std::uint32_t i = 0; i < kSamples; ++i) losses.push_back(simulated_loss(i, 3));
  std::vector<float> sorted = losses;
  std::sort(sorted.rbegin(), sorted.rend());
  for (const json& suspect : out["suspects"]) {
    // Among the hardest tenth in truth: the score follows the loss up to the batch's mean.
    EXPECT_GT(losses[suspect["sample"].get<std::size_t>()], sorted[kSamples / 8]);
    EXPECT_EQ(suspect["scores"].size(), 6U);
    EXPECT_FLOAT_EQ(suspect["scores"].back().get<float>(), suspect["score"].get<float>());
    EXPECT_GE(suspect["hard_share"], 0.3);
  }
}

TEST_F(SuspectsCommand, TakesPerSampleLossesWhereNothingWasWatched) {
  record(false);
  const json out = run_json({"suspects", folder(), "--json"});
  EXPECT_EQ(out["score"]["name"], "sample-loss");
  EXPECT_EQ(out["num_scored"], 100);
  EXPECT_EQ(out["suspects"].size(), 100U);
  EXPECT_EQ(run_json({"suspects", folder(), "--score", "batch-loss:alpha=0.5",
                      "--json"})["score"]["options"]["alpha"],
            0.5);
}

// The losses themselves are better than what the gradients tell of them.
TEST_F(SuspectsCommand, TakesPerSampleLossesWhereAllWereRecorded) {
  record(true, kSamples);
  const json out = run_json({"suspects", folder(), "--json"});
  EXPECT_EQ(out["score"]["name"], "sample-loss");
  EXPECT_EQ(out["num_scored"], kSamples);
}

// What a run says of its samples: the class, the file, the index, and which labels are wrong.
TEST_F(SuspectsCommand, SaysWhoTheSamplesAre) {
  record(true);
  json samples = {{"format", "tamis-samples"}, {"format_version", 1}};
  for (std::size_t i = 0; i < kSamples; ++i) {
    samples["labels"].push_back(i % 2);
    samples["true_labels"].push_back(0);
    samples["indices"].push_back(10 * i);
  }
  samples["classes"] = {"cat, \"black\"", "d\no\x1b[31mg"};
  folder_.write_json("run/samples.json", samples);
  // A folder without config.json is a recording, not a run.
  EXPECT_FALSE(run_json({"suspects", folder(), "--json"})["suspects"][0].contains("label"));
  folder_.write("run/config.json", "{}");
  for (const std::string& source :
       {folder(), folder_.at("run/record"), folder_.at("run/pruner.safetensors")}) {
    const json out = run_json({"suspects", source, "--top", "40", "--json"});
    EXPECT_EQ(out["wrong_labels"]["in_all"], kSamples / 2);
    std::size_t num_wrong = 0;
    for (const json& one : out["suspects"]) {
      const auto sample = one["sample"].get<std::size_t>();
      EXPECT_EQ(one["index"], 10 * sample);
      EXPECT_EQ(one["class"], sample % 2 == 0 ? "cat, \"black\"" : "d\no\x1b[31mg");
      num_wrong += sample % 2;
    }
    EXPECT_EQ(out["wrong_labels"]["here"], num_wrong);
  }
  const Outcome csv = run({"suspects", folder(), "--top", "40", "--csv"});
  EXPECT_THAT(csv.out, AllOf(StartsWith("sample,index,label,true_label,score,"),
                             HasSubstr(",\"cat, \"\"black\"\"\",")));
  const Outcome table = run({"suspects", folder(), "--top", "40"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("of these 40, 160 of all"), HasSubstr("epoch 1"),
                               HasSubstr("epoch 6"), HasSubstr("d o\\u001b[31mg")));
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 4 + 1 + 1 + 40);
}

TEST_F(SuspectsCommand, RanksTheScoresOfAState) {
  record(false);
  const std::string state = folder_.at("run/pruner.safetensors");
  const json out = run_json({"suspects", state, "--top", "5", "--json"});
  const std::vector<float> scores = Pruner::from_file(state).scores();
  EXPECT_FLOAT_EQ(out["suspects"][0]["score"].get<float>(),
                  *std::max_element(scores.begin(), scores.end()));
  EXPECT_TRUE(out["epochs"].empty());
  EXPECT_FALSE(out["suspects"][0].contains("scores"));
}

TEST_F(SuspectsCommand, PrintsATableOrCommaSeparatedValues) {
  record(true);
  json labels = json::array();
  for (std::size_t i = 0; i < kSamples; ++i) labels.push_back(i % 10);
  const std::string file = folder_.write_json("labels.json", labels);
  const Outcome table = run({"suspects", folder(), "--top", "3", "--labels", file});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("output-gradient"), HasSubstr("mean rank"),
                               HasSubstr("the scores after 6 epochs")));
  const Outcome csv = run({"suspects", folder(), "--top", "3", "--labels", file, "--csv"});
  EXPECT_THAT(csv.out, StartsWith("sample,label,score,rank,hard_share,hard_in_a_row,epoch_1,"));
  std::istringstream lines(csv.out);
  std::string line;
  std::size_t num_lines = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 5 + 6);
    ++num_lines;
  }
  EXPECT_EQ(num_lines, 4U);
}

TEST_F(SuspectsCommand, SaysWhatIsWrong) {
  record(false);
  EXPECT_THAT(run({"suspects", folder(), "--top", "0"}).err,
              HasSubstr("--top must be at least 1, got 0"));
  EXPECT_THAT(run({"suspects", folder(), "--json", "--csv"}).err, HasSubstr("one too many"));
  EXPECT_THAT(run({"suspects", folder_.at("run/pruner.safetensors"), "--score", "batch-loss"}).err,
              HasSubstr("--score must be left out for a state"));
  EXPECT_THAT(run({"suspects", folder_.at(".")}).err,
              HasSubstr("holds neither a recording nor a pruner.safetensors"));
  EXPECT_THAT(run({"suspects", folder(), "--labels", folder_.write("l.json", "[1]")}).err,
              HasSubstr("labels must be as many as samples (320), got 1"));
  EXPECT_THAT(run({"suspects", folder(), "--score", "nothing"}).err,
              HasSubstr("score must be one of"));
}

TEST_F(SuspectsCommand, RefusesARecordingOfMeanLossesUnlessAScoreIsNamed) {
  Pruner pruner = make_pruner();
  pruner.record(folder_ / "run/record");
  pruner.start_epoch(0);
  pruner.observe(0, kBatch, 1.0);
  pruner.recorder()->flush();
  EXPECT_THAT(run({"suspects", folder()}).err,
              HasSubstr("neither norms of watched outputs nor per-sample losses"));
  EXPECT_EQ(run({"suspects", folder(), "--score", "reconstruction"}).code, 0);
}

}  // namespace
}  // namespace tamis::test
