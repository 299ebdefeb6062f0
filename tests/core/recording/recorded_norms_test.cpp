// Norms of watched outputs in recordings: what went in comes out, and a replay of them is the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/ranks.h"
#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"
#include "tamis/recorder.h"
#include "tamis/recording.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Norms = std::vector<std::vector<float>>;

Norms read_norms(const fs::path& folder) {
  Norms all;
  Recording(folder).read(
      [&](const RecordedStep& step) { all.emplace_back(step.norms.begin(), step.norms.end()); });
  return all;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Step k: every third one is not watched, every fifth has a row that fills up.
std::vector<float> norms_of(std::uint32_t k) {
  if (k % 3 == 0) return {};
  std::vector<float> norms = {static_cast<float>(k), 0.5F, 0.25F};
  if (k % 5 == 0) norms.push_back(9.0F);
  return norms;
}

void record_step(Recorder& recorder, std::uint32_t k) {
  const std::vector<std::uint32_t> indices = {k % 50, (k + 7) % 50, (k + 20) % 50};
  recorder.record(k / 10, indices, 1.0, std::vector<float>(3, 1.0F), norms_of(k));
}

TEST(RecordedNorms, AreReadBackAcrossShardsAndRewinds) {
  const test::ScratchFolder scratch;
  Norms expected;
  for (std::uint32_t k = 0; k < 100; ++k) expected.push_back(norms_of(k));
  {
    auto recorder = Recorder::create(scratch / "r", {.num_samples = 50, .shard_bytes = 400});
    for (std::uint32_t k = 0; k < 100; ++k) record_step(recorder, k);
    recorder.flush();
    EXPECT_EQ(read_norms(scratch / "r"), expected);
  }
  for (const std::uint32_t kept : {77U, 50U, 3U, 0U}) {
    auto recorder = Recorder::open(scratch / "r");
    recorder.rewind(kept);
    for (std::uint32_t k = kept; k < 100; ++k) record_step(recorder, k);
    recorder.flush();
    EXPECT_EQ(read_norms(scratch / "r"), expected) << "rewound to " << kept;
  }
}

TEST(RecordedNorms, LeaveTheFilesOfRunsThatAreNotWatchedAsTheyWere) {
  const test::ScratchFolder scratch;
  auto recorder = Recorder::create(scratch / "r", {.num_samples = 50});
  recorder.record(0, std::vector<std::uint32_t>{1, 2}, 1.0, std::vector<float>{1.0F, 1.0F});
  recorder.flush();
  EXPECT_EQ(bytes_of(scratch / "r/steps-00000.safetensors").find("norms"), std::string::npos);
  recorder.record(0, std::vector<std::uint32_t>{1, 2}, 1.0, {}, std::vector<float>{1.0F, 1.0F});
  recorder.flush();
  EXPECT_NE(bytes_of(scratch / "r/steps-00000.safetensors").find("norms"), std::string::npos);
  EXPECT_EQ(read_norms(scratch / "r"), (Norms{{}, {1.0F, 1.0F}}));
}

TEST(RecordedNorms, AreAtLeastAsManyAsIndices) {
  const test::ScratchFolder scratch;
  auto recorder = Recorder::create(scratch / "r", {.num_samples = 50});
  const std::vector<std::uint32_t> batch = {1, 2};
  EXPECT_THAT([&] { recorder.record(0, batch, 1.0, {}, std::vector<float>{1.0F}); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("norms must be none or at least as many as indices (2), got 1")));
}

// Replays what a run recorded and compares with the scores that it had.
void expect_replay(const fs::path& folder, const Spec& score, const std::vector<float>& scores) {
  const Recording recording(folder);
  const auto scorer = make_scorer(score, recording.num_samples());
  recording.read([&](const RecordedStep& step) {
    ASSERT_FALSE(step.norms.empty());
    scorer->observe({.indices = step.indices,
                     .mean_loss = static_cast<double>(step.mean_loss),
                     .norms = step.norms});
  });
  Array<float> scratch;
  const auto replayed = scorer->scores(scratch);
  EXPECT_EQ(std::vector<float>(replayed.begin(), replayed.end()), scores);
}

TEST(RecordedNorms, ReplayToTheScoresOfTheRunBitForBit) {
  const Spec score{"output-gradient", {{"power", 2.0}, {"alpha", 0.4}}};
  const PrunerOptions options{.num_samples = 301, .num_epochs = 5, .score = score};
  const test::ScratchFolder scratch;
  Pruner alone(options);
  alone.record(scratch / "one");
  test::simulate_epochs(alone, 0, 5, 16);
  alone.recorder()->flush();
  expect_replay(scratch / "one", score, alone.scores());
  // Three ranks fill up, so there are more norms than samples in some batches.
  test::run_ranks(3, [&](const auto& communicator) {
    Pruner rank(options, communicator);
    rank.record(scratch / "three");
    test::simulate_epochs(rank, 0, 5, 16);
    rank.exchange();
    if (communicator->rank() != 0) return;
    rank.recorder()->flush();
    expect_replay(scratch / "three", score, rank.scores());
  });
  std::size_t num_filled = 0;
  Recording(scratch / "three").read([&](const RecordedStep& step) {
    num_filled += step.norms.size() > step.indices.size() ? 1 : 0;
  });
  EXPECT_GT(num_filled, 0U);
}

TEST(RecordedNorms, AreKeptByRunsWhoseScoreDoesNotUseThem) {
  const test::ScratchFolder scratch;
  test::run_ranks(2, [&](const auto& communicator) {
    Pruner rank({.num_samples = 40, .num_epochs = 2, .score = Spec{"batch-loss"}}, communicator);
    rank.record(scratch / "r");
    rank.start_epoch(0);
    rank.observe(0, std::vector<float>{1.0F, 2.0F}, std::vector<float>{3.0F, 4.0F});
    rank.observe(2, 1.5, std::vector<float>{5.0F, 6.0F});
    rank.exchange();
    if (communicator->rank() == 0) rank.recorder()->flush();
  });
  EXPECT_EQ(read_norms(scratch / "r"),
            (Norms{{3.0F, 4.0F}, {3.0F, 4.0F}, {5.0F, 6.0F}, {5.0F, 6.0F}}));
}

}  // namespace
}  // namespace tamis
