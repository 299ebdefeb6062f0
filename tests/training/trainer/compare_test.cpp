#include "training/trainer/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/scratch_folder.h"
#include "support/tiny_run.h"

namespace tamis::training {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Existing = RunFolder::Existing;

ComparisonConfig tiny_comparison(const std::vector<std::string>& methods = {"full",
                                                                            "bls-infobatch"},
                                 std::vector<std::uint64_t> seeds = {0, 1}) {
  ComparisonConfig config{.shared = test::tiny_config(),
                          .methods = {},
                          .seeds = std::move(seeds),
                          .baseline = methods.front()};
  config.shared.training.epochs = 3;
  for (const std::string& method : methods) config.methods.push_back(parse_method(method));
  return config;
}

class Log final : public ComparisonObserver {
 public:
  std::unique_ptr<TrainingObserver> begin_run(const ComparisonRun& run) override {
    begun.push_back(run.folder.filename());
    return std::make_unique<TrainingObserver>();
  }
  void end_run(const ComparisonRun& run, const RunResult&, bool was_finished) override {
    (was_finished ? kept : made).push_back(run.folder.filename());
  }

  std::vector<std::string> begun;
  std::vector<std::string> made;
  std::vector<std::string> kept;
};

Json without_times(Json summary) {
  for (Json& row : summary["rows"]) {
    for (const char* key :
         {"train_seconds_mean", "time_saved", "time_saved_interval", "prune_overhead"}) {
      row.erase(key);
    }
    for (Json& run : row["runs"]) {
      run.erase("train_seconds");
      run.erase("prune_seconds");
    }
  }
  return summary;
}

TEST(Comparison, RunsAllPairsInTurnAndBeginsWithAnotherMethodForEverySeed) {
  const test::ScratchFolder scratch;
  auto comparison = Comparison::create(scratch / "c", tiny_comparison(), Existing::refuse);
  Log log;
  EXPECT_EQ(comparison.run(test::tiny_data(), log, {}), Outcome::finished);
  EXPECT_THAT(log.made, ElementsAre("full-seed0", "bls-infobatch-seed0", "bls-infobatch-seed1",
                                    "full-seed1"));
  const Json config = read_json(scratch / "c" / "compare.json");
  EXPECT_EQ(config["format"], "tamis-compare");
  EXPECT_EQ(config["methods"], (Json{"full", "bls-infobatch"}));
  EXPECT_EQ(config["seeds"], (Json{0, 1}));
  EXPECT_EQ(config["baseline"], "full");
  EXPECT_EQ(config["config"]["training"]["epochs"], 3);
  EXPECT_EQ(read_json(scratch / "c" / "summary.json"), to_json(comparison.summarize()));
  EXPECT_EQ(RunFolder::read_config(scratch / "c" / "full-seed1").training.seed, 1U);
}

TEST(Comparison, ContinuesWhereItWasInterrupted) {
  const test::ScratchFolder scratch;
  Log log;
  auto whole = Comparison::create(scratch / "whole", tiny_comparison(), Existing::refuse);
  whole.run(test::tiny_data(), log, {});
  int pieces = 0;
  std::map<std::string, int> times_made;
  for (bool finished = false; !finished; ++pieces) {
    ASSERT_LT(pieces, 100);
    Log piece;
    auto comparison = pieces % 2 == 0
                          ? Comparison::create(scratch / "c", tiny_comparison(), Existing::refuse)
                          : Comparison::open(scratch / "c");
    finished = comparison.run(test::tiny_data(), piece, test::stop_after(13)) == Outcome::finished;
    EXPECT_EQ(fs::exists(scratch / "c" / "summary.json"), finished);
    for (const std::string& run : piece.made) ++times_made[run];
  }
  EXPECT_GT(pieces, 4);
  EXPECT_EQ(times_made.size(), 4U);
  for (const auto& [run, times] : times_made) EXPECT_EQ(times, 1) << run;
  EXPECT_EQ(without_times(read_json(scratch / "c" / "summary.json")),
            without_times(read_json(scratch / "whole" / "summary.json")));
}

TEST(Comparison, KeepsItsRunsWhenMethodsAndSeedsAreAdded) {
  const test::ScratchFolder scratch;
  Log first;
  Comparison::create(scratch / "c", tiny_comparison({"full"}, {0}), Existing::refuse)
      .run(test::tiny_data(), first, {});
  Log second;
  auto comparison = Comparison::create(
      scratch / "c", tiny_comparison({"full", "bls-seta:groups=3"}, {0, 1}), Existing::refuse);
  comparison.run(test::tiny_data(), second, {});
  EXPECT_THAT(second.kept, ElementsAre("full-seed0"));
  EXPECT_THAT(second.made,
              ElementsAre("bls-seta:groups=3-seed0", "bls-seta:groups=3-seed1", "full-seed1"));
  EXPECT_EQ(comparison.summarize().rows.size(), 2U);
}

TEST(Comparison, RefusesOtherSettingsInTheSameFolderAndNamesTheDifference) {
  const test::ScratchFolder scratch;
  { Comparison::create(scratch / "c", tiny_comparison(), Existing::refuse); }
  const auto refused = [&](const ComparisonConfig& config, const char* message) {
    EXPECT_THAT([&] { Comparison::create(scratch / "c", config, Existing::refuse); },
                ThrowsMessage<std::runtime_error>(HasSubstr(message)));
  };
  ComparisonConfig config = tiny_comparison();
  config.shared.training.epochs = 4;
  refused(config, "training.epochs 3, now 4");
  config = tiny_comparison();
  config.methods[1].score.options["alpha"] = 0.5;
  refused(config, "alpha 0.7, now 0.5");
  EXPECT_NO_THROW(Comparison::create(scratch / "c", config, Existing::overwrite));
}

TEST(Comparison, OverwritingRemovesItsRunsOnly) {
  const test::ScratchFolder scratch;
  Log log;
  Comparison::create(scratch / "c", tiny_comparison({"full"}, {0}), Existing::refuse)
      .run(test::tiny_data(), log, {});
  fs::create_directory(scratch / "c" / "notes");
  Comparison::create(scratch / "c", tiny_comparison({"full"}, {0}), Existing::overwrite);
  EXPECT_FALSE(fs::exists(scratch / "c" / "full-seed0"));
  EXPECT_FALSE(fs::exists(scratch / "c" / "summary.json"));
  EXPECT_TRUE(fs::exists(scratch / "c" / "notes"));
}

TEST(Comparison, NeverMovesIntoAFolderWithOtherThings) {
  const test::ScratchFolder scratch;
  fs::create_directory(scratch / "notes");
  for (const auto existing : {Existing::refuse, Existing::overwrite}) {
    EXPECT_THAT([&] { Comparison::create(scratch.path(), tiny_comparison(), existing); },
                ThrowsMessage<std::runtime_error>(HasSubstr("holds no comparison")));
  }
  EXPECT_THAT([&] { Comparison::open(scratch.path()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("holds no comparison")));
}

TEST(Comparison, RefusesListsThatMakeNoSense) {
  const auto refused = [](auto change, const char* message) {
    ComparisonConfig config = tiny_comparison();
    change(config);
    EXPECT_THAT([&] { validate(config); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  refused([](auto& c) { c.methods.clear(); }, "methods");
  refused([](auto& c) { c.seeds.clear(); }, "seeds");
  refused([](auto& c) { c.methods.push_back(c.methods[0]); }, "full twice");
  refused([](auto& c) { c.seeds.push_back(1); }, "1 twice");
  refused([](auto& c) { c.baseline = "random"; }, "baseline");
}

TEST(Comparison, DoesNotSummarizeBeforeAllRunsAreFinished) {
  const test::ScratchFolder scratch;
  const auto comparison = Comparison::create(scratch / "c", tiny_comparison(), Existing::refuse);
  EXPECT_THAT([&] { comparison.summarize(); },
              ThrowsMessage<std::runtime_error>(HasSubstr("not finished")));
}

}  // namespace
}  // namespace tamis::training
