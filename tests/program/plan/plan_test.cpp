#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "support/program.h"
#include "tamis/registry.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

Arguments plan_arguments(const std::string& scores, const std::string& policy,
                         const Arguments& more = {}) {
  Arguments all = {"plan", "--scores", scores, "--policy", policy, "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

json random_scores(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  json scores = json::array();
  for (std::size_t i = 0; i < size; ++i) {
    scores.push_back(std::lognormal_distribution<float>(0.0F, 1.0F)(random));
  }
  return scores;
}

TEST(Plan, InfoBatchReportsItsThreshold) {
  const TextFolder folder;
  const std::string scores = folder.write("scores.json", "[1, 2, 3, null, 10]");
  const json plan = run_json(plan_arguments(scores, "infobatch"));
  EXPECT_THAT(keys(plan),
              ElementsAre("epoch", "indices", "num_below", "num_kept_of_below", "num_pruned",
                          "num_samples", "policy", "pruning", "size", "threshold", "weights"));
  EXPECT_EQ(plan["policy"], "infobatch");
  EXPECT_EQ(plan["pruning"], true);
  EXPECT_EQ(plan["threshold"], 4.0);
  EXPECT_EQ(plan["num_below"], 3);
  EXPECT_EQ(plan["num_kept_of_below"], 1);
  EXPECT_EQ(plan["size"], 3);
  EXPECT_EQ(plan["num_pruned"], 2);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(plan["weights"][k], plan["indices"][k] < 3 ? 2.0 : 1.0);
  }
}

TEST(Plan, SetaReportsItsGroups) {
  const TextFolder folder;
  const std::string scores = folder.write("scores.json", "[1, 1, 2, 2, 9, 9, 9, 30]");
  const json plan = run_json(plan_arguments(
      scores, "seta",
      {"--groups", "3", "--window-scale", "0.5", "--prune-ratio", "0", "--epoch", "1"}));
  EXPECT_THAT(keys(plan),
              ElementsAre("epoch", "groups", "indices", "num_pruned", "num_samples", "policy",
                          "pruning", "size", "weights", "window", "within_group_sum_of_squares"));
  EXPECT_EQ(plan["groups"], json::parse(R"([{"size": 4, "low": 1.0, "high": 2.0, "center": 1.5},
                            {"size": 3, "low": 9.0, "high": 9.0, "center": 9.0},
                            {"size": 1, "low": 30.0, "high": 30.0, "center": 30.0}])"));
  EXPECT_EQ(plan["window"], json::parse("[1, 3]"));
  EXPECT_NEAR(plan["within_group_sum_of_squares"], 1.0, 1e-9);
  const std::set<int> chosen = plan["indices"];
  EXPECT_THAT(chosen, ElementsAre(4, 5, 6, 7));
}

TEST(Plan, AnnealingUsesEverythingAndReportsNothing) {
  const TextFolder folder;
  const std::string scores = folder.write("scores.json", "[1, 2, 3, 4]");
  const json plan = run_json(plan_arguments(scores, "infobatch", {"--epoch", "87"}));
  EXPECT_THAT(keys(plan), ElementsAre("epoch", "indices", "num_pruned", "num_samples", "policy",
                                      "pruning", "size", "weights"));
  EXPECT_EQ(plan["pruning"], false);
  EXPECT_EQ(plan["weights"], json::parse("[1.0, 1.0, 1.0, 1.0]"));
}

TEST(Plan, OnceInTheOrderOfThePlanWithAlignedWeightsForEveryPolicy) {
  const TextFolder folder;
  const std::string scores = folder.write_json("scores.json", random_scores(1000, 3));
  for (const PolicyInfo& info : registered_policies()) {
    const std::string policy(info.name);
    SCOPED_TRACE(policy);
    const json plan = run_json(plan_arguments(scores, policy, {"--epoch", "7", "--seed", "5"}));
    const std::vector<std::size_t> indices = plan["indices"];
    EXPECT_EQ(indices.size(), plan["size"]);
    EXPECT_EQ(plan["weights"].size(), plan["size"]);
    EXPECT_EQ(plan["num_pruned"], 1000 - indices.size());
    const std::set<std::size_t> distinct(indices.begin(), indices.end());
    EXPECT_EQ(distinct.size(), indices.size());
    EXPECT_LT(*distinct.rbegin(), 1000U);
    EXPECT_FALSE(std::is_sorted(indices.begin(), indices.end()));
    EXPECT_EQ(run_json(plan_arguments(scores, policy, {"--epoch", "7", "--seed", "5"})), plan);
    EXPECT_NE(run_json(plan_arguments(scores, policy, {"--epoch", "7", "--seed", "6"})), plan);
    EXPECT_NE(run_json(plan_arguments(scores, policy, {"--epoch", "8", "--seed", "5"})), plan);
  }
}

TEST(Plan, TakesTheOutputOfReplay) {
  const TextFolder folder;
  const std::string trace = folder.write(
      "trace.json", R"({"num_samples": 4, "batches": [[0], [1], [2]], "losses": [1, 2, 9]})");
  const Outcome scores = run({"replay", trace, "--score", "last-batch-loss", "--json"});
  const json plan = run_json(plan_arguments("-", "infobatch"), {.input = scores.out});
  EXPECT_EQ(plan["num_samples"], 4);
  EXPECT_EQ(plan["threshold"], 4.0);
  EXPECT_EQ(plan["num_below"], 2);
}

TEST(Plan, EqualOrMissingScoresPruneNothing) {
  const TextFolder folder;
  for (const char* text : {"[0.1, 0.1, 0.1]", "[null, null, null]", "[NaN, NaN, 7]", "[5]"}) {
    SCOPED_TRACE(text);
    const std::string scores = folder.write("scores.json", text);
    EXPECT_EQ(run_json(plan_arguments(scores, "infobatch"))["num_pruned"], 0);
    const Arguments seta = {"--prune-ratio", "0", "--epoch", "2"};
    EXPECT_EQ(run_json(plan_arguments(scores, "seta", seta))["num_pruned"], 0);
  }
}

TEST(Plan, OneGroupAndMoreGroupsThanSamplesWork) {
  const TextFolder folder;
  const std::string scores = folder.write("scores.json", "[1, 2, 3]");
  const auto groups = [&](const char* count) {
    return run_json(
               plan_arguments(scores, "seta", {"--groups", count, "--prune-ratio", "0"}))["groups"]
        .size();
  };
  EXPECT_EQ(groups("1"), 1U);
  EXPECT_EQ(groups("3"), 3U);
  EXPECT_EQ(groups("1000"), 3U);
}

TEST(Plan, TheSummaryHasTheSameFacts) {
  const TextFolder folder;
  const std::string scores = folder.write("scores.json", "[1, 2, 3, null, 10]");
  const Outcome outcome = run({"plan", "--scores", scores, "--policy", "infobatch"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("infobatch:prune_ratio=0.5"));
  EXPECT_THAT(outcome.out, HasSubstr("3 of 5"));
  EXPECT_THAT(outcome.out, HasSubstr("3, 1 of them used, with weight 2"));
  const Outcome groups =
      run({"plan", "--scores", scores, "--policy", "seta", "--prune-ratio", "0"});
  EXPECT_THAT(groups.out, HasSubstr("group  size  low  high  center  used"));
}

TEST(Plan, HomogeneousBatchesHaveOneWeightEach) {
  const TextFolder folder;
  const std::string scores = folder.write("scores.json", random_scores(500, 3).dump());
  const json plan =
      run_json(plan_arguments(scores, "infobatch", {"--homogeneous-batch-size", "16"}));
  std::set<double> weights;
  for (std::size_t k = 0; k < plan["weights"].size(); ++k) {
    EXPECT_EQ(plan["weights"][k], plan["weights"][k - k % 16]) << k;
    weights.insert(plan["weights"][k].get<double>());
  }
  EXPECT_EQ(weights.size(), 2U);
}

TEST(Plan, KeepsAShareOfEveryClass) {
  const TextFolder folder;
  json labels = json::array();
  for (int i = 0; i < 500; ++i) labels.push_back(i % 10);
  const std::string scores = folder.write("scores.json", random_scores(500, 4).dump());
  const std::string classes = folder.write("labels.json", labels.dump());
  const json plan = run_json(plan_arguments(
      scores, "random", {"--prune-ratio", "0.7", "--min-per-class", "0.4", "--labels", classes}));
  std::vector<int> counts(10, 0);
  for (const std::size_t index : plan["indices"]) ++counts[index % 10];
  for (const int count : counts) EXPECT_GE(count, 20);
  EXPECT_GT(plan["num_restored"], 0);
  EXPECT_EQ(run(plan_arguments(scores, "random", {"--min-per-class", "0.4"})).code, 2);
}

}  // namespace
}  // namespace tamis::test
