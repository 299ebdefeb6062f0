// Which runs are compared with which.
#include <gmock/gmock.h>

#include "report.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> labels_of(const nlohmann::json& comparison) {
  std::vector<std::string> labels;
  for (const nlohmann::json& row : comparison["rows"]) labels.push_back(row["method"]);
  return labels;
}

nlohmann::json alpha(double value) {
  return {{"method", {{"score", {{"options", {{"alpha", value}}}}}}}};
}

TEST(ReportGrouping, KeepsTheOrderOfAComparison) {
  const ScratchFolder folder;
  write_comparison(folder / "compare", {.methods = {"seta", "full", "infobatch"},
                                        .seeds = {1},
                                        .accuracies = {{0.9}, {0.9}, {0.9}}});
  const nlohmann::json comparison = report_of({folder / "compare"});
  EXPECT_THAT(labels_of(comparison), ElementsAre("seta", "full", "infobatch"));
  EXPECT_EQ(comparison["baseline"], "seta");
}

TEST(ReportGrouping, PutsTheFullRunFirst) {
  const ScratchFolder folder;
  write_run(folder / "a", {.method = "seta"});
  write_run(folder / "b", {.method = "full"});
  const nlohmann::json comparison = report_of({folder / "a", folder / "b"});
  EXPECT_THAT(labels_of(comparison), ElementsAre("full", "seta"));
  EXPECT_EQ(comparison["baseline"], "full");
}

TEST(ReportGrouping, MakesOneRowOfSeedsAndTwoOfSettings) {
  const ScratchFolder folder;
  write_run(folder / "a1", {.method = "bls-seta", .seed = 1, .config = alpha(0.7)});
  write_run(folder / "a2", {.method = "bls-seta", .seed = 2, .config = alpha(0.7)});
  write_run(folder / "b1", {.method = "bls-seta", .seed = 1, .config = alpha(0.9)});
  const nlohmann::json comparison = report_of({folder / "a1", folder / "b1", folder / "a2"});
  EXPECT_THAT(labels_of(comparison), ElementsAre("bls-seta (alpha 0.7)", "bls-seta (alpha 0.9)"));
  EXPECT_EQ(comparison["rows"][0]["num_seeds"], 2);
  EXPECT_EQ(comparison["rows"][1]["num_seeds"], 1);
}

TEST(ReportGrouping, PrefersTheNamesOfTheRuns) {
  const ScratchFolder folder;
  write_run(folder / "a", {.method = "bls-seta", .name = "slow filter", .config = alpha(0.9)});
  write_run(folder / "b", {.method = "bls-seta", .name = "fast filter", .config = alpha(0.5)});
  EXPECT_THAT(labels_of(report_of({folder / "a", folder / "b"})),
              ElementsAre("slow filter", "fast filter"));
}

TEST(ReportGrouping, KeepsDataSetsApart) {
  const ScratchFolder folder;
  write_run(folder / "a", {});
  write_run(folder / "b", {.config = {{"data", {{"name", "made-up-animals"}}}}});
  const nlohmann::json document =
      run_json({"report", "--json", (folder / "a").string(), (folder / "b").string()});
  ASSERT_EQ(document["comparisons"].size(), 2U);
  EXPECT_EQ(document["comparisons"][0]["name"], "made-up-clothes, small-cnn");
  EXPECT_EQ(document["comparisons"][1]["name"], "made-up-animals, small-cnn");
  EXPECT_EQ(document["title"], "Data pruning on 2 tasks");
}

TEST(ReportGrouping, KeepsHeadlinesApart) {
  const ScratchFolder folder;
  write_run(folder / "a", {});
  json metrics = json::parse(std::ifstream(folder / "a/config.json"))["metrics"];
  for (json& metric : metrics) metric["headline"] = metric["name"] == "test_loss";
  write_run(folder / "b", {.config = {{"metrics", metrics}}});
  const json document =
      run_json({"report", "--json", (folder / "a").string(), (folder / "b").string()});
  ASSERT_EQ(document["comparisons"].size(), 2U);
  EXPECT_EQ(document["comparisons"][0]["metrics"][0]["name"], "test_accuracy");
  EXPECT_EQ(document["comparisons"][1]["metrics"][0]["name"], "test_loss");
}

TEST(ReportGrouping, ShowsGroupsOfSettingsThatOnlyOneProgramHas) {
  const ScratchFolder folder;
  write_run(folder / "a", {.config = {{"augmentation", {{"mosaic", true}}}, {"model", nullptr}}});
  const json comparison = report_of({folder / "a"});
  EXPECT_EQ(comparison["name"], "made-up-clothes");
  EXPECT_THAT(comparison["settings"].dump(), HasSubstr("augmentation.mosaic"));
}

TEST(ReportGrouping, IgnoresWhereAndWhenARunWasMade) {
  const ScratchFolder folder;
  write_run(folder / "a", {.seed = 1});
  write_run(folder / "b", {.seed = 2,
                           .config = {{"data", {{"data_dir", "/elsewhere"}}},
                                      {"environment", {{"date", "2025-01-01T00:00:00Z"}}}}});
  EXPECT_EQ(row_of(report_of({folder / "a", folder / "b"}), "full")["num_seeds"], 2);
}

TEST(ReportGrouping, LeavesOutSettingsThatWereNotGiven) {
  const ScratchFolder folder;
  write_run(folder / "a", {.config = {{"data", {{"data_dir", ""}}}}});
  EXPECT_THAT(report_of({folder / "a"})["settings"].dump(), Not(HasSubstr("data_dir")));
}

TEST(ReportGrouping, CountsAFolderOnceHoweverItIsSpelled) {
  const ScratchFolder folder;
  write_run(folder / "a", {});
  const nlohmann::json comparison =
      report_of({folder / "a", folder.path() / "." / "a/", folder / "a"});
  EXPECT_EQ(comparison["runs"].size(), 1U);
}

TEST(ReportGrouping, WarnsIfMoreThanTheMethodDiffers) {
  const ScratchFolder folder;
  write_run(folder / "a", {});
  write_run(folder / "b",
            {.method = "seta", .config = {{"training", {{"learning_rate", 0.2}, {"threads", 4}}}}});
  const std::string cautions = cautions_of(report_of({folder / "a", folder / "b"}));
  EXPECT_THAT(cautions, HasSubstr("The runs differ in more than the method: "
                                  "training.learning_rate and training.threads."));
  EXPECT_THAT(cautions, HasSubstr("their times cannot be compared"));
}

TEST(ReportGrouping, HasNoCautionWithoutAReason) {
  const ScratchFolder folder;
  // Of so many epochs nearly all are pruned, as the fixture's times say.
  write_comparison(folder / "compare",
                   {.accuracies = {{0.9, 0.9, 0.9}, {0.9, 0.9, 0.9}}, .epochs = 40});
  EXPECT_EQ(cautions_of(report_of({folder / "compare"})), "[]");
}

TEST(ReportGrouping, SeparatesCommonSettingsFromThoseOfAMethod) {
  const ScratchFolder folder;
  write_run(folder / "a", {});
  write_run(folder / "b", {.method = "bls-seta"});
  std::vector<std::string> different;
  const nlohmann::json document = report_of({folder / "a", folder / "b"});
  for (const nlohmann::json& setting : document["settings"]) {
    if (setting["key"] == "training.batch_size") {
      EXPECT_EQ(setting["value"], 128);
    }
    EXPECT_NE(setting["key"], "seed");
    if (setting.contains("values")) different.push_back(setting["key"]);
  }
  EXPECT_THAT(different, UnorderedElementsAre("method.delta", "method.policy.name",
                                              "method.policy.options.prune_ratio",
                                              "method.score.name", "method.score.options.alpha"));
}

}  // namespace
}  // namespace tamis::test
