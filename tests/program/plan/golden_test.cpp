// The figures of the authors' code, through the program.
#include "support/golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "support/program.h"

namespace tamis::test {
namespace {

using nlohmann::json;

std::string number(const json& value) { return value.dump(); }

// Compares scores; samples that no batch holds are unscored in ours and keep the initial value in
// theirs.
void expect_scores(const json& ours, const json& theirs, const std::set<int>& seen) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (!seen.contains(static_cast<int>(i))) {
      EXPECT_TRUE(ours[i].is_null()) << i;
      continue;
    }
    const double expected = theirs[i];
    EXPECT_NEAR(ours[i].get<double>(), expected, 1e-6 * std::abs(expected)) << i;
  }
}

TEST(Golden, ReplayedScoresAreTheAuthors) {
  const TextFolder folder;
  for (const json& trace : load_golden("ema_traces.json")) {
    const std::string path = folder.write_json("trace.json", trace);
    std::set<int> seen;
    for (const json& batch : trace["batches"]) seen.insert(batch.begin(), batch.end());
    for (const auto& [alpha, by_init] : trace["final_scores"].items()) {
      for (const auto& [init, expected] : by_init.items()) {
        SCOPED_TRACE(alpha + " " + init);
        const json out =
            run_json({"replay", path, "--score", "batch-loss", "--alpha", alpha, "--init",
                      init == "init_zero" ? "zero" : "first-batch-loss", "--json"});
        EXPECT_EQ(out["num_scored"], seen.size());
        EXPECT_EQ(out["num_skipped_observations"], 0);
        expect_scores(out["scores"], expected, seen);
      }
    }
  }
}

json scores_of(const json& vectors, const std::string& name) {
  const json& vector = vectors[name];
  if (vector.is_array()) return vector;
  return json(vector["count"].get<std::size_t>(), vector["fill"]);
}

TEST(Golden, InfoBatchSelectsAsManyAsTheAuthors) {
  const TextFolder folder;
  const json golden = load_golden("infobatch_selection.json");
  std::size_t num_refused = 0;
  for (const json& expected : golden["cases"]) {
    SCOPED_TRACE(expected.dump());
    const std::string path =
        folder.write_json("scores.json", scores_of(golden["score_vectors"], expected["name"]));
    const Arguments arguments = {"plan",
                                 "--scores",
                                 path,
                                 "--policy",
                                 "infobatch",
                                 "--prune-ratio",
                                 number(expected["prune_ratio"]),
                                 "--json"};
    if (expected["prune_ratio"] > 0.9) {
      // Theirs lowers it silently.
      EXPECT_THAT(run_refused(2, arguments), testing::HasSubstr("prune_ratio must be in [0, 0.9]"));
      ++num_refused;
      continue;
    }
    const json plan = run_json(arguments);
    EXPECT_NEAR(plan["threshold"], expected["mean"].get<double>(),
                1e-6 * expected["mean"].get<double>());
    EXPECT_EQ(plan["num_below"], expected["num_below_mean"]);
    EXPECT_EQ(plan["num_kept_of_below"], expected["num_kept_of_below"]);
    EXPECT_EQ(plan["size"], expected["plan_size"]);
    EXPECT_EQ(plan["indices"].size(), expected["plan_size"]);
    const double weight = expected["weight_of_kept_below"];
    std::size_t num_rescaled = 0;
    for (const double w : plan["weights"]) {
      EXPECT_TRUE(w == 1.0 || std::abs(w - weight) <= 1e-6 * weight) << w;
      num_rescaled += static_cast<std::size_t>(w != 1.0);
    }
    EXPECT_EQ(num_rescaled, weight == 1.0 ? 0 : expected["num_kept_of_below"].get<std::size_t>());
  }
  EXPECT_EQ(num_refused, 14U);
}

// Epoch 0, which uses all groups, and two others in turn: a process for each of all 1,208 windows
// takes too long.
std::vector<std::size_t> epochs_to_try(std::size_t k) { return {0, 1 + k % 7, 1 + (k + 3) % 7}; }

TEST(Golden, SetaWindowsAreTheAuthors) {
  const TextFolder folder;
  json scores = json::array();
  for (int i = 0; i < 60; ++i) scores.push_back(i);
  const std::string path = folder.write_json("scores.json", scores);
  std::size_t num_empty = 0;
  std::size_t num_windows = 0;
  for (const json& expected : load_golden("seta_windows.json")) {
    SCOPED_TRACE(expected.dump());
    const Arguments arguments = {"plan",
                                 "--scores",
                                 path,
                                 "--policy",
                                 "seta",
                                 "--groups",
                                 number(expected["num_groups"]),
                                 "--window-scale",
                                 number(expected["window_scale"]),
                                 "--json",
                                 "--epoch"};
    const auto at = [&](std::size_t epoch) {
      Arguments all = arguments;
      all.push_back(std::to_string(epoch));
      return all;
    };
    if (expected.contains("error")) {
      EXPECT_THAT(run_refused(2, at(1)), testing::HasSubstr("must be at least 1"));
      ++num_empty;
      continue;
    }
    ASSERT_EQ(expected["ranges"].size(), 8U);
    for (const std::size_t t : epochs_to_try(num_windows++)) {
      const json plan = run_json(at(t));
      EXPECT_EQ(plan["window"], expected["ranges"][t]) << t;
      EXPECT_EQ(plan["groups"].size(), expected["num_groups"]);
    }
  }
  EXPECT_EQ(num_empty, 9U);
}

TEST(Golden, PrunedEpochsAreTheAuthors) {
  const TextFolder folder;
  const std::string path = folder.write_json("scores.json", json::array({1, 2}));
  for (const json& expected : load_golden("schedule.json")) {
    SCOPED_TRACE(number(expected["num_epochs"]) + " " + number(expected["delta"]));
    const std::uint64_t num_epochs = expected["num_epochs"];
    const std::set<std::uint64_t> pruned_from_1 = expected["pruned_epochs_1_based"];
    // The first and the last epoch and those around the change.
    const std::uint64_t change = pruned_from_1.size();
    std::set<std::uint64_t> epochs = {0, num_epochs - 1, change, change + 1};
    if (change > 0) epochs.insert(change - 1);
    for (const std::uint64_t epoch : epochs) {
      if (epoch >= num_epochs) continue;
      const json plan = run_json({"plan", "--scores", path, "--policy", "random", "--epochs",
                                  std::to_string(num_epochs), "--epoch", std::to_string(epoch),
                                  "--delta", number(expected["delta"]), "--json"});
      EXPECT_EQ(plan["pruning"], pruned_from_1.contains(epoch + 1)) << epoch;
      EXPECT_EQ(plan["size"], pruned_from_1.contains(epoch + 1) ? 1 : 2) << epoch;
    }
  }
}

TEST(Golden, SetaGroupsAreAtLeastAsGoodAsScikitLearns) {
  const TextFolder folder;
  std::string path;
  for (const json& expected : load_golden("kmeans_1d.json")) {
    SCOPED_TRACE(expected["name"].get<std::string>() + " " + number(expected["num_groups"]));
    // Cases without scores use those of the case before.
    if (!expected["scores"].is_null()) path = folder.write_json("scores.json", expected["scores"]);
    const json plan = run_json({"plan", "--scores", path, "--policy", "seta", "--groups",
                                number(expected["num_groups"]), "--prune-ratio", "0",
                                "--window-scale", "1", "--json"});
    EXPECT_LE(plan["within_group_sum_of_squares"],
              expected["wcss_sklearn"].get<double>() * (1.0 + 1e-9));
    EXPECT_GE(plan["within_group_sum_of_squares"],
              expected["wcss_sklearn"].get<double>() * (1.0 - 0.2));
    EXPECT_EQ(plan["groups"].size(), expected["num_groups"]);
  }
}

}  // namespace
}  // namespace tamis::test
