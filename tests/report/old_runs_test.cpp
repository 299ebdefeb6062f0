// Folders that an older version wrote, under the product's former name and with accuracy wired in.
#include <gmock/gmock.h>

#include <filesystem>

#include "paths.h"
#include "report.h"

namespace tamis::test {
namespace {

using nlohmann::json;

// analyze and report write into the folder of a run.
class OldRuns : public ::testing::Test {
 protected:
  OldRuns() {
    std::filesystem::copy(std::filesystem::path(TAMIS_GOLDEN_DIR) / "old_runs", folder_.path(),
                          std::filesystem::copy_options::recursive);
  }

  ScratchFolder folder_;
};

TEST_F(OldRuns, OfAComparisonAreShown) {
  const json comparison = report_of({folder_ / "comparison"});
  EXPECT_EQ(comparison["metrics"][0]["name"], "test_accuracy");
  EXPECT_EQ(comparison["baseline"], "full");
  EXPECT_EQ(row_of(comparison, "bls-infobatch")["num_seeds"], 2);
  EXPECT_NEAR(row_of(comparison, "full")["mean"], 0.911, 1e-9);
  EXPECT_EQ(comparison["runs"][0]["epochs"]["values"]["train_loss"].size(), 3U);
  EXPECT_EQ(cautions_of(comparison),
            "[\"bls-infobatch saved more time than pruning can: something else slowed full down. "
            "Repeat the comparison while the machine is quiet.\"]");
}

TEST_F(OldRuns, OfASweepAreShown) {
  const json comparison = report_of({folder_ / "sweep"});
  EXPECT_EQ(comparison["sweep"]["option"], "alpha");
  EXPECT_EQ(comparison["sweep"]["points"].size(), 2U);
}

TEST_F(OldRuns, ThatAreNotFinishedAreShown) {
  const json run = report_of({folder_ / "interrupted"})["runs"][0];
  EXPECT_EQ(run["finished"], false);
  EXPECT_EQ(run["epochs"]["samples"].size(), 3U);
  EXPECT_FALSE(run["score_histograms"].is_null());
}

TEST_F(OldRuns, ThatWereRecordedAreAnalyzedAgain) {
  const json before = report_of({folder_ / "recorded"})["runs"][0]["analysis"];
  const json analysis = run_json({"analyze", (folder_ / "recorded").string(), "--json"});
  EXPECT_EQ(analysis["recording"], before["recording"]);
  EXPECT_EQ(analysis["fidelity"]["epochs"], before["fidelity"]["epochs"]);
}

}  // namespace
}  // namespace tamis::test
