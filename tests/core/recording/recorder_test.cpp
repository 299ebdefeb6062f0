// Recording: what goes in comes out, in bounded memory, through interruptions and faults.
#include "tamis/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "support/file_size_limit.h"
#include "support/rewritten_state.h"
#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "tamis/recording.h"

namespace tamis {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Step {
  std::uint64_t epoch = 0;
  std::vector<std::uint32_t> indices;
  float mean_loss = 0.0F;
  std::vector<std::uint32_t> places;
  std::vector<float> losses;

  friend bool operator==(const Step&, const Step&) = default;
};

std::vector<Step> read(const fs::path& folder) {
  std::vector<Step> steps;
  Recording(folder).read([&](const RecordedStep& step) {
    EXPECT_EQ(step.step, steps.size());
    steps.push_back({step.epoch,
                     {step.indices.begin(), step.indices.end()},
                     step.mean_loss,
                     {step.places.begin(), step.places.end()},
                     {step.losses.begin(), step.losses.end()}});
  });
  return steps;
}

// Step k: three of 50 samples, each with a loss that tells k and the place.
void record_step(Recorder& recorder, std::uint32_t k) {
  const std::vector<std::uint32_t> indices = {k % 50, (k + 7) % 50, (k + 20) % 50};
  const auto loss = static_cast<float>(k);
  recorder.record(k / 10, indices, loss, std::vector<float>{loss, loss + 0.25F, loss + 0.5F});
}

std::uintmax_t bytes_of_shards(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("steps-")) bytes += entry.file_size();
  }
  return bytes;
}

TEST(Recorder, ReadsBackEveryStepAsItWas) {
  const test::ScratchFolder scratch;
  auto recorder = Recorder::create(scratch / "r", {.num_samples = 6, .samples = {4, 1}});
  recorder.record(0, std::vector<std::uint32_t>{1, 3, 4}, 0.5, std::vector<float>{1, 2, 3});
  recorder.record(7, std::vector<std::uint32_t>{5, 4}, 0.25);
  recorder.record(7, std::vector<std::uint32_t>{0}, std::nan(""), std::vector<float>{9});
  recorder.flush();
  const std::vector<Step> steps = read(scratch / "r");
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0], (Step{0, {1, 3, 4}, 0.5F, {0, 1}, {1, 3}}));
  EXPECT_EQ(steps[1].epoch, 7U);
  EXPECT_THAT(steps[1].places, ElementsAre(1U));
  EXPECT_TRUE(std::isnan(steps[1].losses.at(0)));  // only the mean was known
  EXPECT_TRUE(std::isnan(steps[2].mean_loss));
  EXPECT_TRUE(steps[2].losses.empty());
}

TEST(Recorder, IsFoundInsideTheFolderOfARun) {
  const test::ScratchFolder scratch;
  fs::create_directories(scratch / "run");
  EXPECT_FALSE(Recording::exists(scratch / "run"));
  const auto recorder = Recorder::create(scratch / "run/record", {.num_samples = 5});
  EXPECT_TRUE(Recording::exists(scratch / "run"));
  EXPECT_EQ(Recording(scratch / "run").num_samples(), 5U);
}

TEST(Recorder, DrawsSamplesFromTheSeed) {
  const test::ScratchFolder scratch;
  const auto draw = [&](const std::string& name, std::uint64_t seed) {
    const auto recorder =
        Recorder::create(scratch / name, {.num_samples = 1000, .num_recorded = 100, .seed = seed});
    return std::vector<std::uint32_t>(recorder.samples().begin(), recorder.samples().end());
  };
  const auto one = draw("a", 1);
  EXPECT_EQ(one.size(), 100U);
  EXPECT_EQ(one, draw("b", 1));
  EXPECT_NE(one, draw("c", 2));
  EXPECT_EQ(Recorder::create(scratch / "d", {.num_samples = 7}).samples().size(), 7U);
}

TEST(Recorder, KeepsNoMoreThanAShardInMemory) {
  const test::ScratchFolder scratch;
  constexpr std::size_t kShard = 2000;
  auto recorder = Recorder::create(scratch / "r",
                                   {.num_samples = 50, .num_recorded = 50, .shard_bytes = kShard});
  for (std::uint32_t k = 0; k < 1000; ++k) {
    record_step(recorder, k);
    const std::size_t recorded = (std::size_t{k} + 1) * 4 * (3 + 3 + 3);
    ASSERT_GT(bytes_of_shards(scratch / "r") + kShard, recorded) << k;
  }
  EXPECT_EQ(read(scratch / "r").size(), 1000U / 56U * 56U);  // 56 steps fill a shard
  recorder.flush();
  EXPECT_EQ(read(scratch / "r").size(), 1000U);
}

// 60,000 samples in batches of 128: the promise is 200 MB.
TEST(Recorder, NeedsAFewMegabytesForTenThousandSamplesOverFiftyEpochs) {
  const test::ScratchFolder scratch;
  constexpr std::uint32_t kSamples = 60'000;
  auto recorder = Recorder::create(scratch / "r", {.num_samples = kSamples});
  std::vector<std::uint32_t> order(kSamples);
  std::iota(order.begin(), order.end(), 0U);
  const std::vector<float> losses(kSamples, 0.5F);
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    for (std::size_t begin = 0; begin < kSamples; begin += 128) {
      const std::size_t count = std::min<std::size_t>(128, kSamples - begin);
      recorder.record(epoch, std::span(order).subspan(begin, count), 0.5,
                      std::span(losses).first(count));
    }
  }
  recorder.flush();
  const std::uintmax_t bytes = bytes_of_shards(scratch / "r");
  EXPECT_GT(bytes, 14'000'000U);
  EXPECT_LT(bytes, 15'000'000U);
}

TEST(Recorder, WritesTheRestWhenItEnds) {
  const test::ScratchFolder scratch;
  {
    auto recorder = Recorder::create(scratch / "r", {.num_samples = 50});
    record_step(recorder, 0);
    EXPECT_TRUE(read(scratch / "r").empty());
  }
  EXPECT_EQ(read(scratch / "r").size(), 1U);
}

// 200 steps of a run that was stopped after `written` of them, whose last checkpoint was `back`.
std::vector<Step> interrupted(const fs::path& folder, std::uint32_t written, std::uint32_t back) {
  {
    auto recorder = Recorder::create(folder, {.num_samples = 50, .shard_bytes = 1000});
    for (std::uint32_t k = 0; k < written; ++k) record_step(recorder, k);
    recorder.record_true_losses(99, std::vector<float>(50, 1.0F));
  }
  auto recorder = Recorder::open(folder);
  EXPECT_EQ(recorder.num_steps(), written);
  recorder.rewind(back);
  EXPECT_EQ(recorder.num_steps(), back);
  for (std::uint32_t k = back; k < 200; ++k) record_step(recorder, k);
  recorder.flush();
  return read(folder);
}

TEST(Recorder, HasNoStepTwiceAfterAResume) {
  const test::ScratchFolder scratch;
  const std::vector<Step> expected = interrupted(scratch / "whole", 200, 200);
  ASSERT_EQ(expected.size(), 200U);
  for (const auto& [written, back] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {100, 100}, {100, 99}, {150, 3}, {28, 28}, {56, 28}, {57, 28}, {57, 0}, {199, 112}}) {
    const fs::path folder = scratch / std::to_string(written) += "-" + std::to_string(back);
    EXPECT_EQ(interrupted(folder, written, back), expected) << written << ' ' << back;
    // Measured after steps that were taken back.
    EXPECT_EQ(Recording(folder).true_losses().size(), written == back ? 1U : 0U);
  }
}

TEST(Recorder, CannotGoOnWithoutTheStepsBefore) {
  const test::ScratchFolder scratch;
  auto recorder = Recorder::create(scratch / "r", {.num_samples = 50});
  record_step(recorder, 0);
  EXPECT_THAT(
      [&] { recorder.rewind(2); },
      ThrowsMessage<std::runtime_error>(HasSubstr("ends after step 1, but the run stands at 2")));
  EXPECT_EQ(recorder.num_steps(), 1U);
}

TEST(Recorder, RefusesAFolderThatHasARecording) {
  const test::ScratchFolder scratch;
  Recorder::create(scratch / "r", {.num_samples = 50});
  EXPECT_THAT([&] { Recorder::create(scratch / "r", {.num_samples = 50}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("holds a recording already")));
  EXPECT_THAT([&] { Recorder::open(scratch / "none"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("holds no recording")));
}

TEST(Recorder, KeepsTrueLossesByEpoch) {
  const test::ScratchFolder scratch;
  auto recorder = Recorder::create(scratch / "r", {.num_samples = 9, .samples = {8, 2}});
  recorder.record_true_losses(10, std::vector<float>{3, 4});
  recorder.record_true_losses(2, std::vector<float>{1, 2});
  const auto all = Recording(scratch / "r").true_losses();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].epoch, 2U);
  EXPECT_THAT(all[1].losses, ElementsAre(3, 4));
  EXPECT_THAT(
      [&] { recorder.record_true_losses(0, std::vector<float>{1}); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("one per recorded sample (2), got 1")));
}

TEST(Recorder, NamesTheOptionThatIsWrong) {
  const auto message = [](const RecorderOptions& options) {
    try {
      validate(options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message({}), HasSubstr("num_samples must be in [1, 2^32 - 1], got 0"));
  EXPECT_THAT(message({.num_samples = 1, .num_recorded = 0}), HasSubstr("num_recorded"));
  EXPECT_THAT(message({.num_samples = 3, .samples = {1, 3}}), HasSubstr("got 3"));
  EXPECT_THAT(message({.num_samples = 3, .samples = {1, 1}}), HasSubstr("got 1 twice"));
}

TEST(Recorder, RefusesStepsThatCannotBe) {
  const test::ScratchFolder scratch;
  auto recorder = Recorder::create(scratch / "r", {.num_samples = 5});
  EXPECT_THROW(recorder.record(0, std::vector<std::uint32_t>{5}, 1.0), std::out_of_range);
  EXPECT_THROW(recorder.record(0, {}, 1.0), std::invalid_argument);
  EXPECT_THROW(recorder.record(0, std::vector<std::uint32_t>{1, 2}, 1.0, std::vector<float>{1}),
               std::invalid_argument);
  EXPECT_EQ(recorder.num_steps(), 0U);
}

TEST(Recorder, LosesNoStepWhenTheDiskFails) {
  const test::ScratchFolder scratch;
  auto recorder = Recorder::create(scratch / "r", {.num_samples = 50, .shard_bytes = 100});
  record_step(recorder, 0);
  fs::rename(scratch / "r", scratch / "away");
  record_step(recorder, 1);
  EXPECT_THROW(record_step(recorder, 2), std::runtime_error);  // the third fills the shard
  EXPECT_EQ(recorder.num_steps(), 3U);
  fs::rename(scratch / "away", scratch / "r");
  recorder.flush();
  EXPECT_EQ(read(scratch / "r").size(), 3U);
}

class DamagedRecording : public ::testing::Test {
 protected:
  DamagedRecording() {
    auto recorder = Recorder::create(folder_, {.num_samples = 50, .shard_bytes = 1000});
    for (std::uint32_t k = 0; k < 100; ++k) record_step(recorder, k);
  }

  std::string message() const {
    try {
      read(folder_);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "(none)";
  }

  test::ScratchFolder scratch_;
  fs::path folder_ = scratch_ / "r";
};

TEST_F(DamagedRecording, WithAFlippedBitIsRefused) {
  auto bytes = test::read_bytes(folder_ / "steps-00001.safetensors");
  bytes[5000] ^= std::byte{4};
  test::write_bytes(folder_ / "steps-00001.safetensors", bytes);
  EXPECT_THAT(message(), HasSubstr("steps-00001.safetensors: the data are damaged"));
}

TEST_F(DamagedRecording, WithoutAShardIsRefused) {
  fs::remove(folder_ / "steps-00001.safetensors");
  EXPECT_THAT(message(), HasSubstr("steps-00001.safetensors: is missing, but later steps"));
}

TEST_F(DamagedRecording, WithShardsOutOfPlaceIsRefused) {
  fs::copy_file(folder_ / "steps-00000.safetensors", folder_ / "steps-00001.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(message(), HasSubstr("begins with step 0, not 28"));
}

TEST_F(DamagedRecording, ForgetsWhatAKilledProcessHadBegun) {
  std::ofstream(folder_ / "steps-00009.safetensors.tmp-12-0") << "half";
  EXPECT_EQ(message(), "(none)");
  EXPECT_EQ(Recorder::open(folder_).num_steps(), 100U);
  EXPECT_FALSE(fs::exists(folder_ / "steps-00009.safetensors.tmp-12-0"));
}

TEST_F(DamagedRecording, KeepsFilesOfOthersBesideItsOwn) {
  for (const char* const name : {"steps-00009.safetensors.tmp-mine", "my.safetensors.tmp-1-2",
                                 "steps-9.safetensors", "losses-epoch.safetensors"}) {
    std::ofstream(folder_ / name) << "mine";
  }
  EXPECT_EQ(Recorder::open(folder_).num_steps(), 100U);
  Recorder::remove(folder_);
  EXPECT_FALSE(Recorder::exists(folder_));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 4);
}

TEST_F(DamagedRecording, OfMoreSamplesThanThereCanBeIsRefused) {
  const fs::path path = folder_ / "samples.safetensors";
  const auto edited = test::rewritten(test::read_bytes(path), [](test::ContainerParts& parts) {
    parts.text("num_samples") = "5000000000";
  });
  test::write_bytes(path, edited);
  EXPECT_THAT(message(), HasSubstr("field num_samples must be below 2^32"));
}

// A pruner's own recording.

PrunerOptions options() {
  return {.num_samples = 300, .num_epochs = 6, .score = Spec{"batch-loss"}, .seed = 2};
}

TEST(PrunerRecord, HasEveryObservationAlsoTheSkippedOnes) {
  const test::ScratchFolder scratch;
  PrunerOptions with_losses = options();
  with_losses.score = Spec{"sample-loss"};
  Pruner pruner(with_losses);
  pruner.record(scratch / "r", {.num_recorded = 300});
  test::simulate_epochs(pruner, 0, 2, 16);
  pruner.recorder()->flush();
  const std::vector<Step> steps = read(scratch / "r");
  EXPECT_EQ(steps.size(), pruner.num_observations() + pruner.num_skipped_observations());
  EXPECT_GT(pruner.num_skipped_observations(), 0U);
  EXPECT_EQ(steps.back().epoch, 1U);
  EXPECT_EQ(steps[1].losses.at(0), test::simulated_loss(steps[1].indices.at(0), 0));
}

TEST(PrunerRecord, OfAResumedRunIsThatOfTheRunThatWasNot) {
  const test::ScratchFolder scratch;
  {
    Pruner whole(options());
    whole.record(scratch / "whole");
    test::simulate_epochs(whole, 0, 3, 16);
  }
  {
    Pruner first(options());
    first.record(scratch / "parts");
    test::simulate_epochs(first, 0, 1, 16);
    first.start_epoch(1);
    test::simulate_step(first, 16);
    first.save(scratch / "state");
    test::simulate_step(first, 16);  // after the checkpoint, and lost with it
  }
  Pruner second = Pruner::from_file(scratch / "state");
  second.record(scratch / "parts");
  test::simulate_epoch(second, 16);
  test::simulate_epochs(second, 2, 3, 16);
  second.recorder()->flush();
  const std::string shard = "steps-00000.safetensors";
  EXPECT_EQ(test::read_bytes(scratch / ("parts/" + shard)),
            test::read_bytes(scratch / ("whole/" + shard)));
}

TEST(PrunerRecord, GoesBackWithAStateThatIsLoaded) {
  const test::ScratchFolder scratch;
  Pruner pruner(options());
  pruner.record(scratch / "r");
  pruner.start_epoch(0);
  test::simulate_step(pruner, 16);
  const auto state = pruner.serialize();
  test::simulate_step(pruner, 16);
  pruner.deserialize(state);
  EXPECT_EQ(pruner.recorder()->num_steps(), 1U);
}

TEST(PrunerRecord, RefusesTheRecordingOfAnotherRun) {
  const test::ScratchFolder scratch;
  Recorder::create(scratch / "other", {.num_samples = 299});
  Pruner pruner(options());
  EXPECT_THROW(pruner.record(scratch / "other"), std::runtime_error);
  test::simulate_epochs(pruner, 0, 1, 16);
  EXPECT_THAT([&] { pruner.record(scratch / "other"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("recording of 299 samples")));
  EXPECT_EQ(pruner.recorder(), nullptr);
}

// What was recorded before stays readable, and what came since is written when there is space.
TEST(Recorder, LosesNothingOnAFullDisk) {
  const test::ScratchFolder folder;
  const RecorderOptions options = {
      .num_samples = 50, .num_recorded = 20, .seed = 1, .shard_bytes = 600};
  for (const rlim_t limit : {0, 100, 4096, 4097, 4500}) {
    const fs::path path = folder / std::to_string(limit);
    Recorder recorder = Recorder::create(path, options);
    for (std::uint32_t k = 0; k < 15; ++k) record_step(recorder, k);
    recorder.flush();
    const auto before = read(path);
    std::uint32_t next = 15;
    {
      const test::FileSizeLimit full(limit);
      EXPECT_THAT(
          [&] {
            while (next < 100) record_step(recorder, next++);
          },
          ThrowsMessage<std::runtime_error>(HasSubstr("File too large")))
          << limit;
      EXPECT_THROW(recorder.flush(), std::runtime_error);
      if (limit <= 4096) {  // a file that is smaller than a shard
        EXPECT_THROW(recorder.record_true_losses(1, std::vector<float>(20)), std::runtime_error);
      }
      const auto steps = read(path);
      ASSERT_GE(steps.size(), before.size());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), steps.begin()));
    }
    while (next < 30) record_step(recorder, next++);
    recorder.flush();
    EXPECT_EQ(read(path).size(), next);
    for (const auto& entry : fs::directory_iterator(path)) {
      EXPECT_EQ(entry.path().extension(), ".safetensors");
    }
  }
}

}  // namespace
}  // namespace tamis
