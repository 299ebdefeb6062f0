#include "runs/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/former_name.h"
#include "support/scratch_folder.h"

namespace tamis::runs {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Existing = RunFolder::Existing;

ComparisonPlan plan_of(const std::vector<std::string>& methods = {"full", "bls-infobatch"},
                       std::vector<std::uint64_t> seeds = {0, 1}) {
  ComparisonPlan plan{.shared = {{"training", {{"epochs", 3}}}},
                      .methods = {},
                      .seeds = std::move(seeds),
                      .baseline = methods.front()};
  for (const std::string& method : methods) {
    plan.methods.push_back({method, {{"score", {{"alpha", 0.7}}}}});
  }
  return plan;
}

std::vector<std::string> folders_of(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const PlannedRun& run : comparison.runs()) names.push_back(run.folder.filename());
  return names;
}

// What a training program would write, in the smallest form.
void write_run(const PlannedRun& run, std::size_t num_epochs = 2, std::size_t num_done = 2) {
  const auto folder = RunFolder::create(run.folder, Existing::overwrite);
  folder.write_config(
      {{"format", kRunFormat},
       {"format_version", kRunVersion},
       {"method", {{"name", run.method->name}}},
       {"seed", run.seed},
       {"epochs", num_epochs},
       {"data", {{"name", "made-up"}, {"num_train", 10}}},
       {"metrics", {{{"name", "mAP"}, {"direction", "higher"}, {"headline", true}}}}});
  std::vector<EpochMetrics> epochs;
  for (std::size_t e = 0; e < num_done; ++e) {
    epochs.push_back({.epoch = e, .samples = 10, .train_seconds = 1.0, .values = {{"mAP", 0.5}}});
  }
  folder.write_metrics(epochs);
}

// Whoever writes compare.json, runs stay inside of the folder.
TEST(Comparison, MethodsThatLeadOutOfTheFolderAreRefused) {
  for (const char* const name : {"../x", "a/../../x", "/tmp/x", "a\\u0000b", "a\\nb", ""}) {
    const test::ScratchFolder scratch;
    std::ofstream(scratch / "compare.json")
        << R"({"format": "tamis-compare", "format_version": 1, "seeds": [0], "config": {},)"
        << R"("baseline": "full", "methods": ["full", ")" << name << R"("]})";
    EXPECT_THAT([&] { Comparison::open(scratch.path()); },
                ThrowsMessage<std::runtime_error>(HasSubstr("names without a /")))
        << name;
  }
}

TEST(Comparison, OverwritingRemovesItsRunsAndNothingElse) {
  const test::ScratchFolder scratch;
  const fs::path other = scratch / "c" / "my-own-run";
  {
    const auto comparison = Comparison::create(scratch / "c", plan_of(), Existing::refuse);
    for (const PlannedRun& run : comparison.runs()) write_run(run);
    write_run({.method = &comparison.plan().methods[0], .seed = 0, .folder = other});
  }
  std::ofstream(scratch / "c" / "full-seed0" / "notes.txt") << "mine";
  Comparison::create(scratch / "c", plan_of(), Existing::overwrite);
  EXPECT_TRUE(is_run(other));
  EXPECT_TRUE(fs::exists(scratch / "c" / "full-seed0" / "notes.txt"));
  EXPECT_FALSE(is_run(scratch / "c" / "full-seed0"));
  EXPECT_FALSE(fs::exists(scratch / "c" / "full-seed1"));
}

// What a process that is killed leaves of a write; no comparison and no run has it afterwards.
TEST(Comparison, TakenOverRemovesWhatWasUnderWay) {
  const std::vector<std::string> names = {"compare.json.tmp-1-0", "summary.json.tmp-22-3",
                                          "sweep.json.tmp-7-1"};
  const auto created = [](Existing existing) {
    return [existing](const fs::path& path) { Comparison::create(path, plan_of(), existing); };
  };
  const std::vector<std::function<void(const fs::path&)>> ways = {
      created(Existing::refuse), created(Existing::overwrite),
      [](const fs::path& path) { Comparison::open(path); }};
  for (const auto& take_over : ways) {
    const test::ScratchFolder scratch;
    { Comparison::create(scratch.path(), plan_of(), Existing::refuse); }
    for (const std::string& name : names) std::ofstream(scratch / name) << "{";
    std::ofstream(scratch / "notes.json.tmp-1-0") << "mine";
    take_over(scratch.path());
    EXPECT_THAT(scratch.names(), ElementsAre("compare.json", "notes.json.tmp-1-0"));
  }
}

TEST(Comparison, GoesOnWhereARunWasKilledAtOnce) {
  for (const auto existing : {Existing::refuse, Existing::overwrite}) {
    const test::ScratchFolder scratch;
    { Comparison::create(scratch / "c", plan_of(), Existing::refuse); }
    for (const char* const name : {"full-seed0", "seta-seed5"}) {
      fs::create_directory(scratch / "c" / name);
      std::ofstream(scratch / "c" / name / "config.json.tmp-1-0") << "{";
    }
    const auto comparison = Comparison::create(scratch / "c", plan_of(), existing);
    // An overwritten comparison may have had other runs.
    EXPECT_EQ(fs::exists(scratch / "c" / "seta-seed5"), existing == Existing::refuse);
    EXPECT_FALSE(comparison.runs()[0].is_finished());
    write_run(comparison.runs()[0]);
    EXPECT_TRUE(comparison.runs()[0].is_finished());
    EXPECT_FALSE(fs::exists(scratch / "c" / "full-seed0" / "config.json.tmp-1-0"));
  }
}

TEST(Comparison, IsCreatedWhereAnEarlierOneWasKilledAtOnce) {
  const test::ScratchFolder scratch;
  std::ofstream(scratch / "compare.json.tmp-7-0") << "{";
  EXPECT_NO_THROW(Comparison::create(scratch.path(), plan_of(), Existing::refuse));
}

TEST(Comparison, OfAChangedFileIsRefused) {
  const test::ScratchFolder scratch;
  { Comparison::create(scratch / "c", plan_of(), Existing::refuse); }
  const fs::path file = scratch / "c" / "compare.json";
  std::string text = read_text(file.native());
  text.replace(text.find("0.7"), 3, "0.9");
  write_text(file, text);
  EXPECT_THAT([&] { Comparison::open(scratch / "c"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("does not match its checksum")));
}

TEST(Comparison, BeginsWithAnotherMethodForEverySeed) {
  const test::ScratchFolder scratch;
  const auto comparison = Comparison::create(scratch / "c", plan_of(), Existing::refuse);
  EXPECT_THAT(folders_of(comparison), ElementsAre("full-seed0", "bls-infobatch-seed0",
                                                  "bls-infobatch-seed1", "full-seed1"));
  const Json json = read_json(scratch / "c" / "compare.json");
  EXPECT_EQ(json["format"], "tamis-compare");
  EXPECT_EQ(json["methods"], (Json{"full", "bls-infobatch"}));
  EXPECT_EQ(json["seeds"], (Json{0, 1}));
  EXPECT_EQ(json["baseline"], "full");
  EXPECT_EQ(json["config"]["training"]["epochs"], 3);
}

TEST(Comparison, KnowsWhatIsFinished) {
  const test::ScratchFolder scratch;
  const auto comparison = Comparison::create(scratch / "c", plan_of(), Existing::refuse);
  const auto runs = comparison.runs();
  EXPECT_FALSE(runs[0].is_finished());
  write_run(runs[0], 2, 1);
  EXPECT_FALSE(runs[0].is_finished());
  write_run(runs[0]);
  EXPECT_TRUE(runs[0].is_finished());
  EXPECT_THAT([&] { comparison.summarize(); },
              ThrowsMessage<std::runtime_error>(HasSubstr("not finished")));
  for (const PlannedRun& run : runs) write_run(run);
  EXPECT_EQ(comparison.finish().rows.size(), 2U);
  EXPECT_EQ(read_json(scratch / "c" / "summary.json"), to_json(comparison.summarize()));
}

TEST(Comparison, RefusesARunThatIsNotWhatItsFolderSays) {
  const test::ScratchFolder scratch;
  const auto comparison = Comparison::create(scratch / "c", plan_of(), Existing::refuse);
  PlannedRun wrong = comparison.runs()[0];
  wrong.seed = 7;
  write_run(wrong);
  EXPECT_THAT([&] { comparison.runs()[0].is_finished(); },
              ThrowsMessage<std::runtime_error>(HasSubstr("seed must be 0, got 7")));
  const PlannedMethod other{"seta"};
  wrong = comparison.runs()[0];
  wrong.method = &other;
  write_run(wrong);
  EXPECT_THAT([&] { comparison.runs()[0].is_finished(); },
              ThrowsMessage<std::runtime_error>(HasSubstr("name must be full, got \"seta\"")));
}

TEST(Comparison, KeepsItsRunsWhenMethodsAndSeedsAreAdded) {
  const test::ScratchFolder scratch;
  {
    const auto comparison =
        Comparison::create(scratch / "c", plan_of({"full"}, {0}), Existing::refuse);
    write_run(comparison.runs()[0]);
  }
  const auto comparison = Comparison::create(
      scratch / "c", plan_of({"full", "seta:groups=3"}, {0, 1}), Existing::refuse);
  EXPECT_EQ(comparison.runs().size(), 4U);
  EXPECT_TRUE(comparison.runs()[0].is_finished());
}

TEST(Comparison, OfTheFormerNameIsContinued) {
  const test::ScratchFolder scratch;
  fs::create_directory(scratch / "c");
  std::ofstream(scratch / "c/compare.json")
      << R"({"format": ")" << detail::kFormerName
      << R"(-compare", "format_version": 1, "methods": ["full"], "seeds": [0],)"
      << R"("baseline": "full", "config": {"training": {"epochs": 3}},)"
      << R"("pruning": {"full": {"score": {"alpha": 0.7}}}})";
  const auto comparison =
      Comparison::create(scratch / "c", plan_of({"full", "seta"}, {0}), Existing::refuse);
  EXPECT_THAT(folders_of(comparison), ElementsAre("full-seed0", "seta-seed0"));
}

TEST(Comparison, RefusesOtherSettingsInTheSameFolderAndNamesTheDifference) {
  const test::ScratchFolder scratch;
  { Comparison::create(scratch / "c", plan_of(), Existing::refuse); }
  const auto refused = [&](const ComparisonPlan& plan, const char* message) {
    EXPECT_THAT([&] { Comparison::create(scratch / "c", plan, Existing::refuse); },
                ThrowsMessage<std::runtime_error>(HasSubstr(message)));
  };
  ComparisonPlan plan = plan_of();
  plan.shared["training"]["epochs"] = 4;
  refused(plan, "training.epochs 3, now 4");
  plan = plan_of();
  plan.shared["command"] = "python train.py";
  refused(plan, "command");
  plan = plan_of();
  plan.methods[1].settings["score"]["alpha"] = 0.5;
  refused(plan, "alpha 0.7, now 0.5");
  EXPECT_NO_THROW(Comparison::create(scratch / "c", plan, Existing::overwrite));
}

// A folder of an older version names fewer settings; what it then had is known.
TEST(Comparison, IsContinuedWhereNewSettingsHaveTheirFormerValue) {
  const test::ScratchFolder scratch;
  const auto create = [&](const char* precision) {
    ComparisonPlan plan = plan_of();
    plan.former = {{"training", {{"precision", "float32"}}}};
    plan.shared["training"]["precision"] = precision;
    return Comparison::create(scratch / "c", plan, Existing::refuse).plan().shared;
  };
  { Comparison::create(scratch / "c", plan_of(), Existing::refuse); }
  EXPECT_THAT(
      [&] { create("bfloat16"); },
      ThrowsMessage<std::runtime_error>(HasSubstr("precision \"float32\", now \"bfloat16\"")));
  EXPECT_EQ(create("float32")["training"]["precision"], "float32");
  EXPECT_EQ(create("float32")["training"]["epochs"], 3);
}

TEST(Comparison, OverwritingRemovesItsRunsOnly) {
  const test::ScratchFolder scratch;
  {
    const auto comparison =
        Comparison::create(scratch / "c", plan_of({"full"}, {0}), Existing::refuse);
    write_run(comparison.runs()[0]);
    comparison.finish();
  }
  std::ofstream(scratch / "c" / "sweep.json") << "{}";  // of what it was
  fs::create_directory(scratch / "c" / "notes");
  Comparison::create(scratch / "c", plan_of({"full"}, {0}), Existing::overwrite);
  EXPECT_FALSE(fs::exists(scratch / "c" / "full-seed0"));
  EXPECT_FALSE(fs::exists(scratch / "c" / "summary.json"));
  EXPECT_FALSE(fs::exists(scratch / "c" / "sweep.json"));
  EXPECT_TRUE(fs::exists(scratch / "c" / "notes"));
}

TEST(Comparison, NeverMovesIntoAFolderWithOtherThings) {
  const test::ScratchFolder scratch;
  fs::create_directory(scratch / "notes");
  for (const auto existing : {Existing::refuse, Existing::overwrite}) {
    EXPECT_THAT([&] { Comparison::create(scratch.path(), plan_of(), existing); },
                ThrowsMessage<std::runtime_error>(HasSubstr("holds no comparison")));
  }
  EXPECT_THAT([&] { Comparison::open(scratch.path()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("holds no comparison")));
}

TEST(Comparison, RefusesListsThatMakeNoSense) {
  const auto refused = [](auto change, const char* message) {
    ComparisonPlan plan = plan_of();
    change(plan);
    EXPECT_THAT([&] { validate(plan); }, ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  refused([](auto& p) { p.methods.clear(); }, "methods");
  refused([](auto& p) { p.methods[1].name = "a/b"; }, "without a /");
  refused([](auto& p) { p.seeds.clear(); }, "seeds");
  refused([](auto& p) { p.methods.push_back(p.methods[0]); }, "full twice");
  refused([](auto& p) { p.seeds.push_back(1); }, "1 twice");
  refused([](auto& p) { p.baseline = "random"; }, "baseline");
}

}  // namespace
}  // namespace tamis::runs
