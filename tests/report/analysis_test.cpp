// What the report takes from analysis.json and sweep.json.
#include <gmock/gmock.h>

#include "report.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ReportAnalysis, IsPartOfTheRunOnceItWasAnalyzed) {
  const TextFolder folder;
  write_recorded_run(folder / "run", 12);
  EXPECT_TRUE(report_of({folder / "run"})["runs"][0]["analysis"].is_null());
  const json analysis = run_json({"analyze", folder.at("run"), "--json"});
  EXPECT_EQ(report_of({folder / "run"})["runs"][0]["analysis"], analysis);
}

TEST(ReportAnalysis, OfAnotherFormatIsRefused) {
  const TextFolder folder;
  write_run(folder / "run", {});
  folder.write("run/analysis.json", R"({"format": "tamis-analysis", "format_version": 2})");
  EXPECT_THAT(run_refused(1, {"report", folder.at("run")}),
              HasSubstr("analysis.json: format_version must be 1"));
}

TEST(ReportAnalysis, ARecordedRunRepeatsOneThatWasNot) {
  const TextFolder folder;
  write_run(folder / "a", {.method = "full", .seed = 1});
  write_run(folder / "b", {.method = "full", .seed = 2, .config = {{"record", {{"samples", 5}}}}});
  EXPECT_EQ(row_of(report_of({folder / "a", folder / "b"}), "full")["num_seeds"], 2);
}

TEST(ReportSweep, PointsAtTheRowsOfItsValues) {
  const TextFolder folder;
  write_sweep(folder / "sweep", {0.5, 0.9});
  const json comparison = report_of({folder / "sweep"});
  EXPECT_EQ(comparison["sweep"]["option"], "alpha");
  ASSERT_EQ(comparison["sweep"]["points"].size(), 2U);
  const json point = comparison["sweep"]["points"][1];
  EXPECT_EQ(point["value"], 0.9);
  EXPECT_EQ(row_of(comparison, point["method"])["num_seeds"], 3);
}

TEST(ReportSweep, IsNullForAPlainComparison) {
  const TextFolder folder;
  write_comparison(folder / "c", {.accuracies = {{0.9, 0.9, 0.9}, {0.9, 0.9, 0.9}}});
  EXPECT_TRUE(report_of({folder / "c"})["sweep"].is_null());
}

TEST(ReportSweep, ThatIsDamagedIsRefused) {
  const TextFolder folder;
  write_sweep(folder / "sweep", {0.5});
  folder.write("sweep/sweep.json", R"({"format": "tamis-sweep", "format_version": 1})");
  EXPECT_THAT(run_refused(1, {"report", folder.at("sweep")}), HasSubstr("\"method\" is missing"));
}

}  // namespace
}  // namespace tamis::test
