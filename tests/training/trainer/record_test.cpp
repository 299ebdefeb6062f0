// Recording a run: it changes nothing, misses nothing, and survives interruptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "support/scratch_folder.h"
#include "support/tiny_run.h"
#include "tamis/recording.h"

namespace tamis::training::record_test {

namespace fs = std::filesystem;

RunConfig recorded_config(const std::string& method = "bls-infobatch") {
  RunConfig config = test::tiny_config(method);
  config.num_recorded = 1000;  // all 120
  return config;
}

// Name and bytes of every file of the recording.
std::map<std::string, std::vector<std::byte>> files_of(const fs::path& run) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& entry : fs::directory_iterator(run / "record")) {
    files[entry.path().filename()] = test::read_bytes(entry.path());
  }
  return files;
}

void train(const RunConfig& config, const fs::path& path) {
  Trainer trainer = test::start(config, path);
  ASSERT_EQ(test::run_quietly(trainer), Outcome::finished);
}

class RecordedMethod : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Record, RecordedMethod,
                         ::testing::Values("full", "bls-infobatch", "infobatch", "ogs-infobatch"));

TEST_P(RecordedMethod, TrainsBitForBitAsWithoutTheRecording) {
  const test::ScratchFolder scratch;
  Trainer plain = test::start(test::tiny_config(GetParam()), scratch / "plain");
  Trainer recorded = test::start(recorded_config(GetParam()), scratch / "recorded");
  test::run_quietly(plain);
  test::run_quietly(recorded);
  EXPECT_TRUE(test::same_bits(test::weights_of(plain), test::weights_of(recorded)));
  EXPECT_EQ(test::timeless(plain.metrics()), test::timeless(recorded.metrics()));
  EXPECT_FALSE(fs::exists(scratch / "plain/record"));
}

TEST_P(RecordedMethod, HasEverySampleOfEveryStepWithItsOwnLoss) {
  const test::ScratchFolder scratch;
  train(recorded_config(GetParam()), scratch / "run");
  std::vector<std::uint64_t> samples(6);
  Recording(scratch / "run").read([&](const RecordedStep& step) {
    samples.at(step.epoch) += step.indices.size();
    ASSERT_EQ(step.losses.size(), step.indices.size());
    const double mean = std::accumulate(step.losses.begin(), step.losses.end(), 0.0) /
                        static_cast<double>(step.losses.size());
    EXPECT_NEAR(mean, static_cast<double>(step.mean_loss), 1e-6);
    ASSERT_EQ(step.norms.size(), step.indices.size());
    for (std::size_t k = 0; k < step.norms.size(); ++k) {
      // EL2N / B, which is at most sqrt(2) / B, times the weight of the batch, at most 2.
      EXPECT_LE(step.norms[k] * static_cast<float>(step.norms.size()),
                2.0F * std::sqrt(2.0F) + 1e-4F);
      EXPECT_GT(step.norms[k], 0.0F);
    }
  });
  const auto metrics = runs::read_run(scratch / "run").epochs;
  for (std::size_t e = 0; e < 6; ++e) EXPECT_EQ(samples[e], metrics[e].samples) << e;
}

TEST(Record, OfAnInterruptedRunIsThatOfTheRunThatWasNot) {
  const test::ScratchFolder scratch;
  train(recorded_config(), scratch / "whole");
  const auto expected = files_of(scratch / "whole");
  // Fewer would stop every epoch again while its true losses are being measured.
  for (const int every : {5, 12}) {
    const fs::path path = scratch / std::to_string(every);
    Outcome outcome = Outcome::interrupted;
    {
      Trainer trainer = test::start(recorded_config(), path);
      outcome = test::run_quietly(trainer, test::stop_after(every));
    }
    for (int pieces = 0; outcome == Outcome::interrupted && pieces < 1000; ++pieces) {
      Trainer trainer = test::resume(path);
      outcome = test::run_quietly(trainer, test::stop_after(every));
    }
    EXPECT_EQ(files_of(path), expected) << every;
  }
}

// What a process that was killed had recorded after its last checkpoint is made again, not twice.
TEST(Record, GoesBackToTheCheckpoint) {
  const test::ScratchFolder scratch;
  train(recorded_config(), scratch / "whole");
  {
    Trainer trainer = test::start(recorded_config(), scratch / "killed");
    test::run_quietly(trainer, test::stop_after(10));
  }
  {
    auto ahead = Recorder::open(scratch / "killed/record");
    ahead.record(5, std::vector<std::uint32_t>{1, 2, 3}, 0.5);
    ahead.record_true_losses(5, std::vector<float>(120, 1.0F));
  }
  Trainer trainer = test::resume(scratch / "killed");
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
  EXPECT_EQ(files_of(scratch / "killed"), files_of(scratch / "whole"));
}

TEST(Record, MeasuresTheTrueLossesOfTheRecordedSamples) {
  const test::ScratchFolder scratch;
  RunConfig config = recorded_config();
  config.training.epochs = 12;
  Trainer trainer = test::start(config, scratch / "run");
  test::run_quietly(trainer);
  const auto truths = Recording(scratch / "run").true_losses();
  ASSERT_EQ(truths.size(), 10U);
  EXPECT_EQ(truths.back().epoch, 11U);
  const double mean =
      std::accumulate(truths.back().losses.begin(), truths.back().losses.end(), 0.0) /
      static_cast<double>(truths.back().losses.size());
  EXPECT_NEAR(mean, evaluate(trainer.model(), test::tiny_data().train, false, {})->loss, 1e-5);
}

TEST(Record, IsPartOfTheSettings) {
  const test::ScratchFolder scratch;
  train(recorded_config(), scratch / "run");
  EXPECT_EQ(read_run_config(scratch / "run").num_recorded, 1000U);
}

TEST(Record, GoesWithTheRunThatIsOverwritten) {
  const test::ScratchFolder scratch;
  train(recorded_config(), scratch / "run");
  Trainer trainer(test::tiny_config(), test::tiny_data(),
                  RunFolder::create(scratch / "run", RunFolder::Existing::overwrite));
  EXPECT_FALSE(fs::exists(scratch / "run/record"));
}

}  // namespace tamis::training::record_test
