// What the report takes from gallery.json, samples.json and a recording.
#include <gmock/gmock.h>

#include <limits>
#include <vector>

#include "report.h"
#include "tamis/pruner.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ReportGallery, IsPartOfTheRun) {
  const TextFolder folder;
  write_run(folder / "run", {});
  EXPECT_TRUE(report_of({folder / "run"})["runs"][0]["gallery"].is_null());
  write_gallery(folder / "run");
  const json gallery = report_of({folder / "run"})["runs"][0]["gallery"];
  EXPECT_EQ(gallery, json::parse(std::ifstream(folder / "run/gallery.json")));
}

TEST(ReportGallery, IsThatOfTheFirstSeedOfEachMethod) {
  const TextFolder folder;
  write_comparison(folder / "c", {.accuracies = {{0.9, 0.9, 0.9}, {0.9, 0.9, 0.9}}});
  for (const auto& entry : std::filesystem::directory_iterator(folder / "c")) {
    if (entry.is_directory()) write_gallery(entry.path());
  }
  std::map<std::string, std::vector<bool>> shown;
  const json comparison = report_of({folder / "c"});
  for (const json& run : comparison["runs"]) {
    shown[run["method"]].push_back(!run["gallery"].is_null());
  }
  ASSERT_EQ(shown.size(), 2U);
  for (const auto& [method, galleries] : shown) {
    EXPECT_EQ(galleries, (std::vector<bool>{true, false, false})) << method;
  }
}

// A page must not be written from what it cannot show.
TEST(ReportGallery, ThatIsDamagedIsRefused) {
  const TextFolder folder;
  write_run(folder / "run", {});
  write_gallery(folder / "run");
  const json good = json::parse(std::ifstream(folder / "run/gallery.json"));
  const auto refused = [&](const std::string& pointer, const json& value) {
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    folder.write_json("run/gallery.json", bad);
    return run_refused(1, {"report", folder.at("run"), "--out", folder.at("page.html")});
  };
  EXPECT_THAT(refused("/samples/0/picture", "javascript:alert(1)"),
              HasSubstr("gallery.json: samples[0]: picture must be a PNG file"));
  EXPECT_THAT(refused("/samples/0/sample", 1000),
              HasSubstr("below data.num_train of config.json (1000), got 1000"));
  EXPECT_THAT(refused("/samples/0", nullptr), HasSubstr("gallery.json: samples[0]"));
  EXPECT_THAT(refused("/groups", {1}), HasSubstr("groups must be an object"));
  EXPECT_THAT(refused("/crc32c", "00000000"), HasSubstr("does not match its checksum"));
  folder.write("run/gallery.json", "{");
  EXPECT_THAT(run_refused(1, {"report", folder.at("run")}),
              HasSubstr("gallery.json: not valid JSON"));
  EXPECT_FALSE(std::filesystem::exists(folder / "page.html"));
}

TEST(ReportSuspects, AreThoseOfTamisSuspects) {
  const TextFolder folder;
  write_recorded_run(folder / "run", 12);
  const json expected = run_json({"suspects", folder.at("run"), "--top", "24", "--json"});
  EXPECT_EQ(report_of({folder / "run"})["runs"][0]["suspects"], expected);
  EXPECT_EQ(expected["suspects"].size(), 24U);
}

TEST(ReportSuspects, AreNullWithoutARecording) {
  const TextFolder folder;
  write_run(folder / "run", {});
  EXPECT_TRUE(report_of({folder / "run"})["runs"][0]["suspects"].is_null());
}

TEST(ReportSuspects, SayWhoTheSamplesAre) {
  const TextFolder folder;
  write_recorded_run(folder / "run", 6);
  json files = json::array();
  for (int i = 0; i < 640; ++i) files.push_back("photo " + std::to_string(i));
  json samples = {{"format", "tamis-samples"}, {"format_version", 1}, {"files", files}};
  folder.write_json("run/samples.json", samples);
  const json found = report_of({folder / "run"})["runs"][0]["suspects"]["suspects"][0];
  EXPECT_EQ(found["file"], "photo " + std::to_string(found["sample"].get<int>()));
  samples["files"].erase(0);
  folder.write_json("run/samples.json", samples);
  EXPECT_THAT(run_refused(1, {"report", folder.at("run")}),
              HasSubstr("samples.json: number of files must be that of the run's training samples "
                        "(640), got 639"));
}

TEST(ReportSuspects, OfADamagedRecordingAreRefused) {
  const TextFolder folder;
  write_recorded_run(folder / "run", 6);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run/record")) {
    if (!entry.path().filename().string().starts_with("steps")) continue;
    auto bytes = read_bytes(entry.path());
    bytes[bytes.size() / 2] ^= std::byte{1};
    write_bytes(entry.path(), bytes);
  }
  EXPECT_THAT(run_refused(1, {"report", folder.at("run")}), HasSubstr("steps"));
}

TEST(ReportAdvice, IsThatOfTamisAdvise) {
  const TextFolder folder;
  write_recorded_run(folder / "run", 12);
  const json expected = run_json({"advise", folder.at("run"), "--json"});
  EXPECT_EQ(report_of({folder / "run"})["runs"][0]["advice"], expected);
  EXPECT_FALSE(expected["methods"].empty());
}

TEST(ReportAdvice, IsNullWithoutARecording) {
  const TextFolder folder;
  write_run(folder / "run", {});
  EXPECT_TRUE(report_of({folder / "run"})["runs"][0]["advice"].is_null());
}

TEST(ReportAdvice, IsNullWhereNoBatchHasAFiniteLoss) {
  constexpr std::size_t kSamples = 64;
  const TextFolder folder;
  write_run(folder / "run", {.epochs = 1, .num_train = kSamples});
  Pruner pruner({.num_samples = kSamples, .num_epochs = 1, .score = Spec{"batch-loss"}});
  pruner.record(folder / "run/record", {.num_recorded = kSamples});
  pruner.start_epoch(0);
  std::vector<float> losses(kSamples, 1.0F);
  losses[0] = std::numeric_limits<float>::quiet_NaN();
  pruner.observe(0, losses);
  pruner.set_position(kSamples);
  pruner.save(folder / "run/pruner.safetensors");
  EXPECT_TRUE(report_of({folder / "run"})["runs"][0]["advice"].is_null());
  EXPECT_THAT(run_refused(1, {"advise", folder.at("run")}),
              HasSubstr("no step with a finite loss"));
}

}  // namespace
}  // namespace tamis::test
