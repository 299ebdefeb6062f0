#include "training/trainer/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/scratch_folder.h"
#include "support/tiny_run.h"

namespace tamis::training::compare_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using Existing = RunFolder::Existing;

runs::ComparisonPlan tiny_plan(const std::vector<std::string>& methods = {"full", "bls-infobatch"},
                               std::vector<std::uint64_t> seeds = {0, 1}) {
  RunConfig shared = test::tiny_config();
  shared.training.epochs = 3;
  std::vector<Method> parsed;
  for (const std::string& method : methods) parsed.push_back(parse_method(method));
  return make_plan(shared, parsed, std::move(seeds), methods.front());
}

class Log final : public ComparisonObserver {
 public:
  std::unique_ptr<TrainingObserver> begin_run(const runs::PlannedRun& run) override {
    begun.push_back(run.folder.filename());
    return std::make_unique<TrainingObserver>();
  }
  void end_run(const runs::PlannedRun& run, bool was_finished) override {
    (was_finished ? kept : made).push_back(run.folder.filename());
  }

  std::vector<std::string> begun;
  std::vector<std::string> made;
  std::vector<std::string> kept;
};

Json without_times(Json summary) {
  for (Json& row : summary["rows"]) {
    for (const char* key : {"train_seconds_mean", "time_saved", "time_saved_interval",
                            "more_saved_than_pruned", "prune_overhead", "num_disturbed"}) {
      row.erase(key);
    }
    for (Json& run : row["runs"]) {
      run.erase("train_seconds");
      run.erase("processor_seconds");
      run.erase("prune_seconds");
      run.erase("processor_share");
    }
  }
  return summary;
}

TEST(Comparison, RunsAllPairsInTurnAndBeginsWithAnotherMethodForEverySeed) {
  const test::ScratchFolder scratch;
  auto comparison = runs::Comparison::create(scratch / "c", tiny_plan(), Existing::refuse);
  Log log;
  EXPECT_EQ(run_comparison(comparison, test::tiny_data(), log, {}), Outcome::finished);
  EXPECT_THAT(log.made, ElementsAre("full-seed0", "bls-infobatch-seed0", "bls-infobatch-seed1",
                                    "full-seed1"));
  const Json config = runs::read_json(scratch / "c" / "compare.json");
  EXPECT_EQ(config["methods"], (Json{"full", "bls-infobatch"}));
  EXPECT_EQ(config["seeds"], (Json{0, 1}));
  EXPECT_EQ(config["baseline"], "full");
  EXPECT_EQ(config["config"]["training"]["epochs"], 3);
  EXPECT_EQ(runs::read_json(scratch / "c" / "summary.json"), runs::to_json(comparison.summarize()));
  EXPECT_EQ(read_run_config(scratch / "c" / "full-seed1").training.seed, 1U);
}

TEST(Comparison, ContinuesWhereItWasInterrupted) {
  const test::ScratchFolder scratch;
  Log log;
  auto whole = runs::Comparison::create(scratch / "whole", tiny_plan(), Existing::refuse);
  run_comparison(whole, test::tiny_data(), log, {});
  int pieces = 0;
  std::map<std::string, int> times_made;
  for (bool finished = false; !finished; ++pieces) {
    ASSERT_LT(pieces, 100);
    Log piece;
    auto comparison = pieces % 2 == 0
                          ? runs::Comparison::create(scratch / "c", tiny_plan(), Existing::refuse)
                          : runs::Comparison::open(scratch / "c");
    finished = run_comparison(comparison, test::tiny_data(), piece, test::stop_after(13)) ==
               Outcome::finished;
    EXPECT_EQ(fs::exists(scratch / "c" / "summary.json"), finished);
    for (const std::string& run : piece.made) ++times_made[run];
  }
  EXPECT_GT(pieces, 4);
  EXPECT_EQ(times_made.size(), 4U);
  for (const auto& [run, times] : times_made) EXPECT_EQ(times, 1) << run;
  EXPECT_EQ(without_times(runs::read_json(scratch / "c" / "summary.json")),
            without_times(runs::read_json(scratch / "whole" / "summary.json")));
}

}  // namespace tamis::training::compare_test
