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

// A page must not be written from what it cannot show.
TEST(ReportAnalysis, WithAMissingOrOtherMemberIsRefused) {
  const TextFolder folder;
  write_recorded_run(folder / "run", 12);
  const json good = run_json({"analyze", folder.at("run"), "--json"});
  const auto refused = [&](const std::string& pointer, const json& value) {
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    folder.write_json("run/analysis.json", bad);
    return run_refused(1, {"report", folder.at("run"), "--json"});
  };
  EXPECT_THAT(refused("/recording", 5),
              HasSubstr("recording: the document must be an object with the key \"num_samples\""));
  EXPECT_THAT(refused("/recording/batch_size", "128"),
              HasSubstr("analysis.json: recording: batch_size must be a number or null"));
  EXPECT_THAT(refused("/fidelity/scores", nullptr), HasSubstr("scores must be an array, got null"));
  EXPECT_THAT(refused("/fidelity/scores/0/spearman", {1, "2"}),
              HasSubstr("spearman must be an array of numbers or nulls"));
  EXPECT_THAT(refused("/fidelity/alphas/0/options", json::object()),
              HasSubstr("the key \"alpha\" is missing"));
  folder.write("run/analysis.json", R"({"format": "tamis-analysis", "format_version": 1})");
  EXPECT_THAT(run_refused(1, {"report", folder.at("run")}),
              HasSubstr("analysis.json: the key \"recording\" is missing"));
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
