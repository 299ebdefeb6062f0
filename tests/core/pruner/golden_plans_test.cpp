// Plans, scores, states and recordings are bit for bit those of version 0.1.0; see
// tests/golden/README.md.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "paths.h"
#include "support/golden.h"
#include "support/golden_plans/digest.h"
#include "support/golden_plans/run.h"
#include "support/golden_plans/scenario.h"
#include "support/scratch_folder.h"

namespace tamis::test::golden {
namespace {

using nlohmann::json;

const std::filesystem::path kStates = std::filesystem::path(TAMIS_GOLDEN_DIR) / "old_state";

std::map<std::string, std::string> read_lines() {
  std::map<std::string, std::string> lines;
  std::ifstream file(std::string(TAMIS_GOLDEN_DIR) + "/plans.txt");
  for (std::string line; std::getline(file, line);) lines[line.substr(0, line.find(' '))] = line;
  return lines;
}

// The columns in which two lines differ.
std::string difference(const std::string& wanted, const std::string& got) {
  std::istringstream wanted_words(wanted);
  std::istringstream got_words(got);
  std::string wanted_word;
  std::string got_word;
  wanted_words >> wanted_word;
  got_words >> got_word;
  std::string columns;
  for (const std::string& column : column_names()) {
    wanted_words >> wanted_word;
    got_words >> got_word;
    if (wanted_word != got_word) columns += column + " ";
  }
  return columns;
}

class GoldenPlans : public testing::TestWithParam<std::string> {};

TEST_P(GoldenPlans, AreThoseOfBefore) {
  static const std::map<std::string, std::string> wanted = read_lines();
  std::size_t num_compared = 0;
  for (const Scenario& scenario : make_scenarios()) {
    if (scenario.policy.name != GetParam()) continue;
    ASSERT_TRUE(wanted.contains(scenario.name)) << scenario.name;
    const std::string got = to_line(scenario.name, run(scenario));
    EXPECT_EQ(difference(wanted.at(scenario.name), got), "") << scenario.name;
    ++num_compared;
  }
  EXPECT_GT(num_compared, 50U);
}

INSTANTIATE_TEST_SUITE_P(Policies, GoldenPlans, testing::ValuesIn(policy_names()));

json to_json(const RunDigests& digests) {
  const EpochDigests& first = digests.epochs.front();
  return {{"after_load",
           {{"epoch", first.epoch},
            {"scores", to_hex(first.scores)},
            {"order", to_hex(first.order)},
            {"weights", to_hex(first.weights)},
            {"counts", to_hex(first.counts)},
            {"observations", to_hex(first.observations)}}},
          {"end_of_run",
           {{"orders", to_hex(fold(digests.epochs, &EpochDigests::order))},
            {"weights", to_hex(fold(digests.epochs, &EpochDigests::weights))},
            {"scores", to_hex(digests.scores)},
            {"tensors", to_hex(digests.tensors)},
            {"metadata", to_hex(digests.metadata)}}}};
}

TEST(GoldenStates, FilesOfTheFormerNameGoOnAsBefore) {
  const json manifest = load_golden("old_state/manifest.json");
  std::map<std::string, json> loads;
  for (const json& state : manifest.at("states")) loads[state.at("file")] = state.at("loads");
  for (const StateFixture& fixture : make_state_fixtures()) {
    const std::string file = fixture.scenario.name + ".safetensors";
    for (const RankLayout layout : fixture.loads) {
      EXPECT_EQ(to_json(run_from(fixture.scenario, layout, kStates / file)),
                loads.at(file).at(to_text(layout)))
          << file << " loaded by " << to_text(layout);
    }
  }
}

json to_json(const RecordingDigests& digests) {
  return {{"num_samples", digests.num_samples},
          {"num_steps", digests.num_steps},
          {"samples", to_hex(digests.samples)},
          {"batches", to_hex(digests.batches)},
          {"true_losses", to_hex(digests.true_losses)}};
}

TEST(GoldenRecordings, AreThoseOfBeforeAndOfTheFormerNameAreRead) {
  Scenario scenario;
  scenario.num_samples = 60;
  scenario.num_epochs = 4;
  scenario.batch_size = 8;
  const json recordings = load_golden("old_state/manifest.json").at("recordings");
  ASSERT_EQ(recordings.size(), 2U);
  for (const json& recording : recordings) {
    const std::string name = recording.at("folder");
    EXPECT_EQ(to_json(digest_recording(kStates / name)), recording.at("content")) << name;

    const bool has_samples = name == "recording-samples";
    scenario.policy = {has_samples ? "seta" : "infobatch"};
    scenario.score = {has_samples ? "sample-loss" : "batch-loss"};
    const ScratchFolder scratch;
    const std::filesystem::path folder = scratch.path() / "record";
    write_recording(scenario, folder,
                    has_samples ? std::vector<std::uint32_t>{3, 1, 4, 15, 9, 26, 5, 35}
                                : std::vector<std::uint32_t>{},
                    has_samples ? 800 : 1U << 20U);
    EXPECT_EQ(to_json(digest_recording(folder)), recording.at("content")) << name;
  }
}

}  // namespace
}  // namespace tamis::test::golden
