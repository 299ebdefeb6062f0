// Recording, analysis and sweeps as a user meets them: real processes on real data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/program.h"

namespace tamis::test::record_program_test {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Arguments small(const std::string& command, const Arguments& more) {
  Arguments arguments = {command, "--limit", "1500", "--test-limit", "100", "--batch-size",
                         "32",    "--width", "0.25", "--threads",    "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(TrainProgram, RecordsARunThatCanBeAnalyzed) {
  const TextFolder folder;
  const std::string path = folder.at("run");
  const Outcome trained = run(small(
      "train", {"--epochs", "16", "--method", "bls-infobatch", "--record", "400", "--out", path}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("the per-sample losses of 400 samples"));
  const json analysis = run_json({"analyze", path, "--json"});
  EXPECT_EQ(analysis["name"], "bls-infobatch on fashion-mnist");
  EXPECT_EQ(analysis["recording"]["num_recorded"], 400);
  // The paper's proposition on real training: the parts add up to the scores that the run saved.
  EXPECT_EQ(analysis["decomposition"]["scores"], "saved by the run");
  EXPECT_LT(analysis["decomposition"]["largest_error"].get<double>(), 1e-5);
  EXPECT_EQ(analysis["fidelity"]["truth"], "measured");
  EXPECT_EQ(analysis["fidelity"]["epochs"].size(), 10U);
  EXPECT_GT(analysis["spectra"]["num_noise_above"], 0);
  for (const json& score : analysis["fidelity"]["scores"]) {
    if (score["name"] == "sample-loss") {
      EXPECT_GT(score["spearman"].back(), 0.5);
    }
  }
  // The replayed batch loss score is, bit for bit, what the run saved.
  const json replayed = run_json({"replay", path, "--score", "batch-loss", "--json"});
  const json saved = run_json({"inspect", path + "/pruner.safetensors", "--json"});
  EXPECT_EQ(replayed["num_scored"], saved["num_scored"]);
  const auto scores = replayed["scores"].get<std::vector<double>>();
  EXPECT_EQ(*std::min_element(scores.begin(), scores.end()), saved["scores"]["min"]);
  EXPECT_EQ(*std::max_element(scores.begin(), scores.end()), saved["scores"]["max"]);
}

TEST(TrainProgram, RecordsTenThousandSamplesIfNotToldOtherwise) {
  const TextFolder folder;
  const Outcome outcome =
      run(small("train", {"--epochs", "1", "--record", "--out", folder.at("run")}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(folder.read("run/config.json"))["record"]["samples"], 10'000);
  EXPECT_THAT(run_refused(2, {"train", "--record", "0"}), HasSubstr("at least 1, got 0"));
  EXPECT_THAT(run_refused(2, {"train", "--resume", folder.at("run"), "--record"}),
              HasSubstr("--resume takes all settings"));
}

TEST(CompareProgram, SweepsAnOptionAndTakesMoreValuesLater) {
  const TextFolder folder;
  const std::string out = folder.at("sweep");
  const auto sweep = [&](const std::string& values, const Arguments& more) {
    Arguments arguments =
        small("sweep", {"--epochs", "2", "--seeds", "0", "1", "--vary", values, "--out", out});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const Outcome first = sweep("alpha=0.9,0.5", {});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("bls-infobatch:alpha=0.5 seed 1  test accuracy"),
                               HasSubstr("difference to full"), Not(HasSubstr("(was done)"))));
  const Outcome second = sweep("alpha=0.7", {"--json"});
  ASSERT_EQ(second.code, 0) << second.err;
  const json result = json::parse(second.out);
  EXPECT_EQ(result["sweep"]["values"], json::parse("[0.5, 0.7, 0.9]"));
  EXPECT_EQ(result["rows"].size(), 4U);
  EXPECT_EQ(result["rows"][0]["method"], "full");
  const std::string before = folder.read("sweep/compare.json");
  EXPECT_THAT(sweep("alpha=0.7", {"--method", "bls-seta"}).err,
              HasSubstr("holds a sweep of alpha"));
  EXPECT_EQ(folder.read("sweep/compare.json"), before);
  const Outcome resumed = run({"sweep", "--resume", out});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("bls-infobatch:alpha=0.7 seed 0  test accuracy"));
  EXPECT_THAT(resumed.out, HasSubstr("(was done)"));
}

TEST(CompareProgram, SweepSaysWhatIsWrongWithTheCommandLine) {
  const TextFolder folder;
  EXPECT_THAT(run_refused(2, {"sweep"}), HasSubstr("--vary is required"));
  EXPECT_THAT(run_refused(2, {"sweep", "--vary", "groups=3"}), HasSubstr("has no option groups"));
  EXPECT_THAT(run_refused(2, {"sweep", "--vary", "alpha=1.5"}), HasSubstr("alpha"));
  EXPECT_THAT(run_refused(2, {"sweep", "--resume", folder.at("x"), "--vary", "alpha=0.5"}),
              HasSubstr("--resume takes all settings from the sweep"));
  EXPECT_THAT(run_refused(1, {"sweep", "--resume", folder.at("x")}), HasSubstr("holds no sweep"));
}

}  // namespace tamis::test::record_program_test
