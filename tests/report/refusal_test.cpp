// Folders that break their format are refused with the file, the place and the rule.
#include <gmock/gmock.h>

#include "report.h"
#include "support/rewritten_state.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string refused(const std::filesystem::path& folder) {
  return run_refused(1, {"report", "--json", folder.string()});
}

// One change of a good run and what the message must say.
struct Damage {
  std::string name;
  json config;
  json last_epoch;
  std::string message;
};

std::vector<Damage> damages() {
  const json none = json::object();
  return {
      {"Format", {{"format", "other"}}, none, R"(config.json: format must be "tamis-run")"},
      {"Version", {{"format_version", 4}}, none, "format_version must be in [1, 3]"},
      {"NoMethod", {{"method", nullptr}}, none, R"(config.json: the key "method" is missing)"},
      {"NoData", {{"data", 3}}, none, "config.json: data must be an object, got 3"},
      {"NoEpochs",
       {{"epochs", 0}},
       none,
       "config.json: epochs must be a whole number of at least 1, got 0"},
      {"Seed", {{"seed", -1}}, none, "seed must be a whole number of at least 0"},
      {"Accuracy",
       none,
       {{"values", {{"test_accuracy", 91.5}}}},
       "metrics.jsonl: line 4: values: test_accuracy must be in [0, 1], for its unit is fraction, "
       "got 91.5"},
      {"NoValues", none, {{"values", nullptr}}, R"(line 4: the key "values" is missing)"},
      {"UnknownValue",
       none,
       {{"values", {{"top5", 0.5}}}},
       R"(line 4: values: top5 must be one of "metrics" of config.json)"},
      {"NoHeadlineValue",
       none,
       {{"values", {{"test_accuracy", nullptr}}}},
       "line 4: values: test_accuracy must be a finite number after the last epoch"},
      {"NoMetrics", {{"metrics", nullptr}}, none, R"(the key "metrics" is missing)"},
      {"NoHeadline",
       {{"metrics", {{{"name", "loss"}, {"direction", "lower"}}}}},
       none,
       R"(number of metrics with "headline": true must be 1, got 0)"},
      {"Direction",
       {{"metrics", {{{"name", "loss"}, {"direction", "down"}}}}},
       none,
       R"(metrics[0]: direction must be "higher" or "lower")"},
      {"MetricTwice",
       {{"metrics",
         {{{"name", "loss"}, {"direction", "lower"}}, {{"name", "loss"}, {"direction", "lower"}}}}},
       none,
       "metrics[1]: name must be a name of its own"},
      {"Pruned", none, {{"pruned", 1001}}, "pruned must be at most data.num_train"},
      {"Epoch", none, {{"epoch", 2}}, "line 4: epoch must be 3"},
      {"Loss",
       none,
       {{"values", {{"test_loss", "low"}}}},
       R"(test_loss must be a number or null, got "low")"},
      {"Seconds", none, {{"train_seconds", -1}}, "train_seconds must be a finite number of at lea"},
      {"Overhead", none, {{"prune_seconds", 99}}, "prune_seconds must be at most train_seconds"},
      {"Histogram",
       none,
       {{"score_histogram", {{"low", 2}, {"high", 1}, {"counts", {1}}}}},
       "line 4: score_histogram: high must be at least low (2), got 1"},
      {"Counts",
       none,
       {{"score_histogram", {{"low", 0}, {"high", 1}, {"counts", {1, -1}}}}},
       "counts[1] must be a whole number of at least 0, got -1"},
  };
}

class ReportRefusal : public ::testing::TestWithParam<Damage> {};

TEST_P(ReportRefusal, NamesTheFileThePlaceAndTheRule) {
  const ScratchFolder folder;
  const Damage& damage = GetParam();
  write_run(folder / "run", {.config = damage.config});
  std::ifstream in(folder / "run/metrics.jsonl");
  std::string text;
  std::string line;
  for (int k = 0; k < 3 && std::getline(in, line); ++k) text += line + "\n";
  std::getline(in, line);
  json last = json::parse(line);
  last.merge_patch(damage.last_epoch);
  std::ofstream(folder / "run/metrics.jsonl") << text << last.dump() << '\n';
  const std::string message = refused(folder / "run");
  EXPECT_THAT(message, HasSubstr((folder / "run").string()));
  EXPECT_THAT(message, HasSubstr(damage.message));
}

INSTANTIATE_TEST_SUITE_P(Damages, ReportRefusal, ::testing::ValuesIn(damages()),
                         [](const auto& damage) { return damage.param.name; });

TEST(ReportFolders, MustBeRunsOrComparisons) {
  const TextFolder folder;
  EXPECT_THAT(refused(folder.path()),
              HasSubstr("must be a run (with config.json) or a comparison"));
  EXPECT_THAT(refused(folder / "nothing"), HasSubstr("must be the folder of a run, got nothing"));
  EXPECT_THAT(refused(folder.write("file", "x")), HasSubstr("got a file"));
  EXPECT_THAT(run_refused(2, {"report"}), HasSubstr("RUN"));
}

TEST(ReportFolders, MayNotRepeatASeed) {
  const ScratchFolder folder;
  write_run(folder / "a", {.seed = 7});
  write_run(folder / "b", {.seed = 7});
  EXPECT_THAT(run_refused(1, {"report", (folder / "a").string(), (folder / "b").string()}),
              HasSubstr("method full with seed 7 and the same settings twice"));
}

TEST(ReportFolders, MayHoldALineThatIsBeingWritten) {
  const ScratchFolder folder;
  write_run(folder / "run", {});
  std::string text;
  std::getline(std::ifstream(folder / "run/metrics.jsonl"), text, '\0');
  std::ofstream(folder / "run/metrics.jsonl") << text.substr(0, text.size() - 20);
  const json run = report_of({folder / "run"})["runs"][0];
  EXPECT_EQ(run["epochs"]["samples"].size(), 3U);
  EXPECT_EQ(run["finished"], false);
}

TEST(ReportFolders, MayNotHaveABrokenLineInTheMiddle) {
  const ScratchFolder folder;
  write_run(folder / "run", {});
  std::ofstream(folder / "run/metrics.jsonl") << "{\"epoch\": 0,\n{}\n";
  EXPECT_THAT(refused(folder / "run"), HasSubstr("metrics.jsonl: line 1: not valid JSON"));
}

TEST(ReportFolders, MayNotHaveMoreEpochsThanPlanned) {
  const ScratchFolder folder;
  write_run(folder / "run", {.epochs = 3});
  const json config = json::parse(std::ifstream(folder / "run/config.json"));
  json shorter = config;
  shorter["epochs"] = 2;
  std::ofstream(folder / "run/config.json") << shorter.dump();
  EXPECT_THAT(refused(folder / "run"), HasSubstr("line 3: epochs of config.json is 2"));
}

TEST(ReportFolders, MustBeWhatAComparisonSays) {
  const ScratchFolder folder;
  const auto compare = folder / "compare";
  write_comparison(compare, {.accuracies = {{0.9, 0.9, 0.9}, {0.9, 0.9, 0.9}}});
  const json good = json::parse(std::ifstream(compare / "compare.json"));
  const auto refused_with = [&](const json& patch) {
    json changed = good;
    changed.merge_patch(patch);
    std::ofstream(compare / "compare.json") << changed.dump();
    return refused(compare);
  };
  EXPECT_THAT(refused_with({{"format", "tamis-run"}}), HasSubstr(R"(must be "tamis-compare")"));
  EXPECT_THAT(refused_with({{"methods", {"full", "full"}}}),
              HasSubstr("methods must be there once each, got full twice"));
  EXPECT_THAT(refused_with({{"methods", {"ucb"}}, {"baseline", "ucb"}}),
              HasSubstr("none of its 3 runs is in the folder"));
  EXPECT_THAT(refused_with({{"seeds", json::array()}}), HasSubstr("seeds must be at least one"));
  EXPECT_THAT(refused_with({{"baseline", "ucb"}}),
              HasSubstr("baseline must be one of the methods"));
  std::ofstream(compare / "compare.json") << good.dump();
  write_run(compare / "full-seed1", {.seed = 4});
  EXPECT_THAT(refused(compare), HasSubstr("full-seed1/config.json: seed must be 1, got 4"));
}

// Sanitizers need more address space than any limit.
#ifndef TAMIS_SANITIZED
TEST(ReportRefuses, WhatARecordedRunClaimsAndTheMachineDoesNotHave) {
  const TextFolder folder;
  write_recorded_run(folder.path(), 4);
  const auto refused_with_little_memory = [&] {
    return run_refused(1, {"report", "--json", folder.path().string()},
                       {.memory_limit = rlim_t{300} << 20U});
  };
  std::string names = "[\"\"";
  for (int i = 0; i < 4'200'000; ++i) names += R"(,"")";
  folder.write("samples.json",
               R"({"format": "tamis-samples", "format_version": 1, "files": )" + names + "]}");
  EXPECT_THAT(refused_with_little_memory(), HasSubstr("samples.json needs about 0.4 GB"));
  std::filesystem::remove(folder / "samples.json");
  const auto path = folder / "record" / "samples.safetensors";
  write_bytes(path, rewritten(read_bytes(path), [](ContainerParts& parts) {
                parts.text("num_samples") = "4294967295";
              }));
  EXPECT_THAT(refused_with_little_memory(), HasSubstr("num_samples 4294967295 needs about"));
}
#endif

}  // namespace
}  // namespace tamis::test
