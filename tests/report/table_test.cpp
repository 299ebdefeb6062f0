// The figures of the table.
#include <gmock/gmock.h>

#include <cmath>

#include "report.h"

namespace tamis::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportTable, GivesMeansOverTheSeeds) {
  const ScratchFolder folder;
  const std::vector<double> accuracies = {0.90, 0.92, 0.97};
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    write_run(folder / std::to_string(seed), {.seed = seed,
                                              .accuracy = accuracies[seed],
                                              .train_seconds = 10.0 + static_cast<double>(seed),
                                              .prune_seconds = 0.11});
  }
  const nlohmann::json row = row_of(report_of({folder / "0", folder / "1", folder / "2"}), "full");
  EXPECT_EQ(row["num_seeds"], 3);
  EXPECT_NEAR(row["mean"], 0.93, 1e-12);
  // Deviations -0.03, -0.01, 0.04; squares 0.0026; over n - 1 = 2.
  EXPECT_NEAR(row["deviation"], std::sqrt(0.0013), 1e-12);
  EXPECT_NEAR(row["train_seconds_mean"], 11.0, 1e-9);
  EXPECT_NEAR(row["prune_overhead"], 0.01, 1e-9);
  EXPECT_NEAR(row["pruned_share"], 0.0, 1e-12);
  EXPECT_TRUE(row["difference"].is_null());
  EXPECT_TRUE(row["time_saved"].is_null());
}

// The seeds differ by 10 points, the methods by 1: only pairs show it.
TEST(ReportTable, PairsDifferencesBySeed) {
  const ScratchFolder folder;
  write_comparison(folder / "compare", {.accuracies = {{0.80, 0.90, 0.85}, {0.790, 0.888, 0.842}}});
  const nlohmann::json row = row_of(report_of({folder / "compare"}), "bls-infobatch");
  // -0.010, -0.012, -0.008; deviation 0.002; t(0.975, 2) = 4.302653.
  const double half = 4.302652729911275 * 0.002 / std::sqrt(3.0);
  EXPECT_EQ(row["difference"]["num_pairs"], 3);
  EXPECT_NEAR(row["difference"]["mean"], -0.010, 1e-12);
  EXPECT_NEAR(row["difference"]["low"], -0.010 - half, 1e-9);
  EXPECT_NEAR(row["difference"]["high"], -0.010 + half, 1e-9);
  EXPECT_EQ(row["difference"]["supported"], true);
}

TEST(ReportTable, AveragesTheTimeSavedOverPairs) {
  const ScratchFolder folder;
  const auto write = [&](const std::string& method, std::uint64_t seed, double seconds) {
    write_run(folder / (method + std::to_string(seed)),
              {.method = method, .seed = seed, .train_seconds = seconds});
  };
  write("full", 1, 10.0);
  write("full", 2, 20.0);
  write("seta", 1, 5.0);   // 50 % saved
  write("seta", 2, 18.0);  // 10 % saved
  const nlohmann::json comparison =
      report_of({folder / "full1", folder / "full2", folder / "seta1", folder / "seta2"});
  EXPECT_NEAR(row_of(comparison, "seta")["time_saved"], 0.3, 1e-9);
}

TEST(ReportTable, CountsPrunedSamplesOverAllEpochs) {
  const ScratchFolder folder;
  write_run(folder / "run", {.method = "infobatch", .epochs = 8, .prune_ratio = 0.4});
  const nlohmann::json comparison = report_of({folder / "run"});
  double used = 0.0;
  for (const nlohmann::json& samples : comparison["runs"][0]["epochs"]["samples"]) {
    used += samples.get<double>();
  }
  const double share = row_of(comparison, "infobatch")["pruned_share"];
  EXPECT_NEAR(share, 1.0 - used / (8.0 * 1000.0), 1e-12);
  EXPECT_GT(share, 0.2);
}

// Several processes pad their last batches: they train on more samples than the plan selected.
TEST(ReportTable, AllowsTheSamplesThatSeveralProcessesAdd) {
  const ScratchFolder folder;
  write_run(folder / "run", {.method = "infobatch", .epochs = 1});
  std::string line;
  std::getline(std::ifstream(folder / "run/metrics.jsonl"), line);
  nlohmann::json epoch = nlohmann::json::parse(line);
  epoch["samples"] = 704;
  epoch["pruned"] = 300;
  std::ofstream(folder / "run/metrics.jsonl") << epoch.dump() << '\n';
  EXPECT_NEAR(row_of(report_of({folder / "run"}), "infobatch")["pruned_share"], 0.3, 1e-12);
}

TEST(ReportTable, ComparesOnlySeedsThatBothMethodsHave) {
  const ScratchFolder folder;
  write_run(folder / "full1", {.seed = 1, .accuracy = 0.90});
  write_run(folder / "full2", {.seed = 2, .accuracy = 0.91});
  write_run(folder / "seta2", {.method = "seta", .seed = 2, .accuracy = 0.92});
  write_run(folder / "seta3", {.method = "seta", .seed = 3, .accuracy = 0.50});
  const nlohmann::json row = row_of(
      report_of({folder / "full1", folder / "full2", folder / "seta2", folder / "seta3"}), "seta");
  EXPECT_EQ(row["num_seeds"], 2);
  EXPECT_EQ(row["difference"]["num_pairs"], 1);
  EXPECT_NEAR(row["difference"]["mean"], 0.01, 1e-12);
}

TEST(ReportTable, GivesNoIntervalForOneSeed) {
  const ScratchFolder folder;
  write_run(folder / "full", {.accuracy = 0.9});
  write_run(folder / "seta", {.method = "seta", .accuracy = 0.8});
  const nlohmann::json row = row_of(report_of({folder / "full", folder / "seta"}), "seta");
  EXPECT_NEAR(row["difference"]["mean"], -0.1, 1e-12);
  EXPECT_TRUE(row["difference"]["low"].is_null());
  EXPECT_TRUE(row["difference"]["high"].is_null());
  EXPECT_EQ(row["difference"]["supported"], false);
  EXPECT_TRUE(row["deviation"].is_null());
}

TEST(ReportTable, LeavesUnfinishedRunsOutAndSaysSo) {
  const ScratchFolder folder;
  write_comparison(folder / "compare", {.accuracies = {{0.9, 0.9, 0.9}, {0.9, 0.9, 0.9}}});
  write_run(folder.path() / "compare/bls-infobatch-seed2",
            {.method = "bls-infobatch", .seed = 2, .missing_epochs = 1, .accuracy = 0.1});
  std::filesystem::remove_all(folder.path() / "compare/full-seed3");
  const nlohmann::json comparison = report_of({folder / "compare"});
  const nlohmann::json row = row_of(comparison, "bls-infobatch");
  EXPECT_EQ(row["num_seeds"], 2);
  EXPECT_NEAR(row["mean"], 0.9, 1e-12);
  EXPECT_EQ(row["difference"]["num_pairs"], 1);
  EXPECT_EQ(comparison["runs"].size(), 5U);
  EXPECT_THAT(cautions_of(comparison), HasSubstr("2 of 6 runs have not finished"));
  EXPECT_THAT(cautions_of(comparison), HasSubstr("bls-infobatch seed 2 (3 of 4 epochs)"));
  EXPECT_THAT(cautions_of(comparison), HasSubstr("full-seed3 (not started)"));
}

TEST(ReportTable, AgreesWithASummaryOfTheSameRuns) {
  const ScratchFolder folder;
  write_comparison(folder / "compare", {.accuracies = {{0.90, 0.91, 0.92}, {0.91, 0.90, 0.93}}});
  const nlohmann::json rows = report_of({folder / "compare"})["rows"];
  std::ofstream(folder.path() / "compare/summary.json") << nlohmann::json{{"rows", rows}}.dump();
  EXPECT_THAT(cautions_of(report_of({folder / "compare"})), Not(HasSubstr("summary.json")));

  nlohmann::json changed = rows;
  changed[1]["difference"]["low"] = -0.5;
  std::ofstream(folder.path() / "compare/summary.json") << nlohmann::json{{"rows", changed}}.dump();
  EXPECT_THAT(cautions_of(report_of({folder / "compare"})),
              HasSubstr("difference.low of bls-infobatch is -0.5 there"));
}

TEST(ReportTable, KeepsLossesThatAreNotFiniteAsNull) {
  const ScratchFolder folder;
  write_run(folder / "run", {.epochs = 2});
  std::ifstream in(folder / "run/metrics.jsonl");
  std::string first;
  std::string second;
  std::getline(in, first);
  std::getline(in, second);
  nlohmann::json broken = nlohmann::json::parse(second);
  broken["values"]["train_loss"] = nullptr;
  std::ofstream(folder / "run/metrics.jsonl") << first << '\n' << broken.dump() << '\n';
  const nlohmann::json losses =
      report_of({folder / "run"})["runs"][0]["epochs"]["values"]["train_loss"];
  EXPECT_TRUE(losses[0].is_number());
  EXPECT_TRUE(losses[1].is_null());
}

}  // namespace
}  // namespace tamis::test
