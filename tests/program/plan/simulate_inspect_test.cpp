// simulate makes a state, inspect shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/program.h"
#include "tamis/registry.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Arguments simulate_arguments(const Arguments& more) {
  Arguments all = {"simulate", "--samples", "3000", "--epochs", "8", "--batch-size", "32"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Simulate, BooksEverySampleThatItPlans) {
  const json out = run_json(simulate_arguments({"--json"}));
  EXPECT_EQ(out["num_samples"], 3000);
  EXPECT_EQ(out["batch_size"], 32);
  EXPECT_EQ(out["delta"], 0.875);
  ASSERT_EQ(out["epochs"].size(), 8U);
  EXPECT_EQ(out["epochs"][0]["num_pruned"], 0);
  EXPECT_EQ(out["epochs"][7]["pruning"], false);
  std::size_t size = 0;
  std::size_t num_batches = 0;
  for (const json& epoch : out["epochs"]) {
    const std::size_t used = epoch["size"];
    EXPECT_EQ(epoch["num_pruned"], 3000 - used);
    EXPECT_NEAR(epoch["pruned_share"], 1.0 - static_cast<double>(used) / 3000.0, 1e-12);
    EXPECT_GT(epoch["plan_seconds"], 0.0);
    EXPECT_GT(epoch["ns_per_sample"], 0.0);
    size += used;
    num_batches += (used + 31) / 32;
  }
  EXPECT_EQ(out["size"], size);
  EXPECT_EQ(out["num_observations"], num_batches);
  EXPECT_NEAR(out["pruned_share"], 1.0 - static_cast<double>(size) / 24000.0, 1e-12);
}

TEST(Simulate, InfoBatchLeavesOutAQuarterOfASymmetricLandscape) {
  // Batch means are nearly symmetric, so about half lie below their mean, and half of these go. The
  // bounds are 5 percentage points wide; the share over 8 epochs varies by less than one.
  const json out =
      run_json({"simulate", "--samples", "20000", "--epochs", "8", "--delta", "1", "--json"});
  EXPECT_NEAR(out["pruned_share"], 0.25 * 7.0 / 8.0, 0.05);
}

TEST(Simulate, GradientsOfACrossEntropyChooseAsItsLossesDo) {
  const json by_loss = run_json(simulate_arguments({"--score", "sample-loss", "--json"}));
  const json by_gradient = run_json(
      simulate_arguments({"--score", "output-gradient", "--cross-entropy", "1", "--json"}));
  EXPECT_EQ(by_gradient["num_skipped_observations"], 0);
  EXPECT_GT(by_loss["pruned_share"], 0.1);
  EXPECT_NEAR(by_gradient["pruned_share"], by_loss["pruned_share"], 1e-4);
}

// Everything but the times.
json without_times(json out) {
  for (json& epoch : out["epochs"]) {
    for (const char* key : {"plan_seconds", "observe_seconds", "ns_per_sample"}) epoch.erase(key);
  }
  for (const char* key : {"plan_seconds", "observe_seconds", "ns_per_sample"}) out.erase(key);
  return out;
}

TEST(Simulate, TheSeedDecidesEverything) {
  const json first = without_times(run_json(simulate_arguments({"--seed", "1", "--json"})));
  EXPECT_EQ(without_times(run_json(simulate_arguments({"--seed", "1", "--json"}))), first);
  const json other = without_times(run_json(simulate_arguments({"--seed", "2", "--json"})));
  EXPECT_NE(other["epochs"], first["epochs"]);
}

TEST(Simulate, RunsEveryPolicyAndScore) {
  for (const PolicyInfo& policy_info : registered_policies()) {
    for (const ScorerInfo& score_info : registered_scorers()) {
      const std::string policy(policy_info.name);
      const std::string score(score_info.name);
      SCOPED_TRACE(policy + " " + score);
      const json out =
          run_json(simulate_arguments({"--policy", policy, "--score", score, "--json"}));
      EXPECT_EQ(out["policy"]["name"], policy);
      EXPECT_EQ(out["score"]["name"], score);
      EXPECT_EQ(out["num_skipped_observations"], 0);
    }
  }
}

TEST(Simulate, PrintsARowPerEpoch) {
  const Outcome outcome = run(simulate_arguments({"--policy", "seta", "--groups", "7"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("seta:groups=7,prune_ratio=0.1,window_scale=0.9"));
  EXPECT_THAT(outcome.out, HasSubstr("\n    7 "));
  EXPECT_THAT(outcome.out, HasSubstr("ns per sample used\n"));
}

TEST(Simulate, SmallestDataSetsWork) {
  for (const char* samples : {"1", "2"}) {
    const json out = run_json({"simulate", "--samples", samples, "--epochs", "3", "--json"});
    EXPECT_EQ(out["epochs"].size(), 3U);
  }
}

TEST(Inspect, ShowsWhatSimulateSaved) {
  const TextFolder folder;
  const std::string state = folder.at("run.safetensors");
  const json run = run_json(simulate_arguments({"--save", state, "--seed", "9", "--json"}));
  const json out = run_json({"inspect", state, "--json"});
  EXPECT_EQ(out["verified"], true);
  for (const char* key :
       {"num_samples", "num_epochs", "seed", "delta", "policy", "score", "pruned_share",
        "num_observations", "num_skipped_observations", "num_scored"}) {
    EXPECT_EQ(out[key], run[key]) << key;
  }
  EXPECT_EQ(out["epoch"], 7);
  EXPECT_EQ(out["position"], 3000);
  EXPECT_EQ(out["size"], 3000);
  EXPECT_EQ(out["arrays"][0]["name"], "scores");
  EXPECT_EQ(out["arrays"][0]["shape"], json::parse("[3000]"));
  EXPECT_LT(out["scores"]["min"], out["scores"]["mean"]);
  EXPECT_LT(out["scores"]["mean"], out["scores"]["max"]);
  std::size_t in_bins = 0;
  for (const json& bin : out["histogram"]) in_bins += bin["count"].get<std::size_t>();
  EXPECT_EQ(in_bins, 3000U);
}

TEST(Inspect, DrawsWithTheCharactersAndTheWidthOfTheTerminal) {
  const TextFolder folder;
  const std::string state = folder.at("run.safetensors");
  ASSERT_EQ(run(simulate_arguments({"--save", state})).code, 0);
  const auto draw = [&](const char* locale, const char* columns) {
    return run({"inspect", state}, {.environment = {{"LC_ALL", locale}, {"COLUMNS", columns}}});
  };
  EXPECT_THAT(draw("C.UTF-8", "80").out, HasSubstr("█"));
  const std::string ascii = draw("C", "80").out;
  EXPECT_THAT(ascii, HasSubstr("###"));
  EXPECT_TRUE(std::all_of(ascii.begin(), ascii.end(), [](char c) { return c > 0; }));
  const auto widest = [](const std::string& text) {
    std::size_t width = 0;
    std::istringstream lines(text.substr(text.find("Histogram")));
    for (std::string line; std::getline(lines, line);) width = std::max(width, line.size());
    return width;
  };
  EXPECT_EQ(widest(ascii), 80U);
  EXPECT_EQ(widest(draw("C", "120").out), 120U);
  EXPECT_LE(widest(draw("C", "nonsense").out), 80U);
}

TEST(Inspect, RefusesDamagedFiles) {
  const TextFolder folder;
  ASSERT_EQ(run(simulate_arguments({"--save", folder.at("run.safetensors")})).code, 0);
  const std::string good = folder.read("run.safetensors");
  std::mt19937 random(4);
  for (int k = 0; k < 20; ++k) {
    std::string bad = good;
    bad[random() % bad.size()] ^= static_cast<char>(1U << (random() % 8));
    EXPECT_THAT(run_refused(1, {"inspect", folder.write("bad.safetensors", bad)}),
                HasSubstr("bad.safetensors: "));
    const std::string cut = good.substr(0, random() % good.size());
    EXPECT_THAT(run_refused(1, {"inspect", folder.write("cut.safetensors", cut), "--json"}),
                HasSubstr("cut.safetensors: "));
  }
}

TEST(Inspect, RefusesWhatIsNotAState) {
  const TextFolder folder;
  EXPECT_THAT(run_refused(1, {"inspect", folder.at("missing")}), HasSubstr("No such file"));
  EXPECT_THAT(run_refused(1, {"inspect", folder.path().string()}), HasSubstr("directory"));
  for (const char* text : {"", "{}", "{\"num_samples\": 3}", "\x02\0\0\0\0\0\0\0{}"}) {
    EXPECT_THAT(run_refused(1, {"inspect", folder.write("foreign", text)}), HasSubstr("foreign: "));
  }
}

TEST(Simulate, MeetsItsTargetOrSaysThatItCannot) {
  const json out = run_json(simulate_arguments({"--target-prune", "0.25", "--json"}));
  EXPECT_NEAR(out["pruned_share"], 0.25, 0.005);
  EXPECT_EQ(out["target_prune"], 0.25);
  EXPECT_THAT(run(simulate_arguments({"--target-prune", "0.25"})).out,
              Not(HasSubstr("could not reach")));
  EXPECT_THAT(run(simulate_arguments({"--target-prune", "0.7"})).out,
              HasSubstr("the target was to prune 70.0 %, which the policy could not reach"));
  EXPECT_EQ(run(simulate_arguments({"--target-prune", "0.9"})).code, 2);
}

TEST(Inspect, ShowsTheOptionsOfThePlan) {
  const TextFolder folder;
  const std::string state = folder.at("run.safetensors");
  ASSERT_EQ(
      run(simulate_arguments({"--homogeneous", "--target-prune", "0.2", "--save", state})).code, 0);
  const json out = run_json({"inspect", state, "--json"});
  EXPECT_EQ(out["homogeneous_batch_size"], 32);
  EXPECT_EQ(out["target_prune"], 0.2);
  EXPECT_FALSE(out.contains("min_per_class"));
  EXPECT_THAT(run({"inspect", state}).out, HasSubstr("20.0 %"));
}

TEST(Simulate, HomogeneousBatchesUseAtMostOneBatchMore) {
  const json mixed = run_json(simulate_arguments({"--policy", "infobatch", "--json"}));
  const json out = run_json(simulate_arguments({"--homogeneous", "--json"}));
  EXPECT_EQ(out["homogeneous"], true);
  EXPECT_EQ(mixed.contains("homogeneous"), false);
  EXPECT_NEAR(out["pruned_share"], mixed["pruned_share"], 0.03);
}

}  // namespace
}  // namespace tamis::test
