// A run that was interrupted and continued is the run that was not, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runs/seal.h"
#include "support/rewritten_state.h"
#include "support/scratch_folder.h"
#include "support/tiny_run.h"
#include "training/trainer/checkpoint.h"

namespace tamis::training::trainer_resume_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Result {
  std::vector<torch::Tensor> weights;
  std::vector<EpochMetrics> metrics;
  std::vector<float> scores;
};

Result result_of(Trainer& trainer) {
  return {test::weights_of(trainer), test::timeless(trainer.metrics()), trainer.pruner().scores()};
}

void expect_same(const Result& a, const Result& b, const std::string& where) {
  EXPECT_TRUE(test::same_bits(a.weights, b.weights)) << where;
  EXPECT_EQ(a.metrics, b.metrics) << where;
  ASSERT_EQ(a.scores.size(), b.scores.size());
  EXPECT_EQ(std::memcmp(a.scores.data(), b.scores.data(), a.scores.size() * sizeof(float)), 0)
      << where;
}

Result run_whole(const RunConfig& config, const fs::path& path) {
  Trainer trainer = test::start(config, path);
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
  return result_of(trainer);
}

// Interrupts the run every time that it was asked `every` times whether to stop.
Result run_in_pieces(const RunConfig& config, const fs::path& path, int every, int* pieces) {
  {
    Trainer trainer = test::start(config, path);
    if (test::run_quietly(trainer, test::stop_after(every)) == Outcome::finished) {
      return result_of(trainer);
    }
  }
  for (*pieces = 1; *pieces < 1000; ++*pieces) {
    Trainer trainer = test::resume(path);
    if (test::run_quietly(trainer, test::stop_after(every)) == Outcome::finished) {
      EXPECT_EQ(test::timeless(runs::read_run(path).epochs), test::timeless(trainer.metrics()));
      return result_of(trainer);
    }
  }
  ADD_FAILURE() << "never finished";
  return {};
}

class ResumedMethod : public ::testing::TestWithParam<std::string> {};

TEST_P(ResumedMethod, IsExactWhereverTheRunWasInterrupted) {
  const test::ScratchFolder scratch;
  RunConfig config = test::tiny_config(GetParam());
  config.training.augment = AugmentKind::crop_flip;
  if (GetParam() == "bls-seta") choose_optimizer(config.training, OptimizerKind::adamw);
  const Result whole = run_whole(config, scratch / "whole");
  for (const int every : {1, 3, 8, 20}) {
    const std::string name = "every" + std::to_string(every);
    int pieces = 0;
    const Result result = run_in_pieces(config, scratch / name, every, &pieces);
    EXPECT_GT(pieces, 1);
    expect_same(whole, result, GetParam() + " " + name);
  }
}

INSTANTIATE_TEST_SUITE_P(Trainer, ResumedMethod,
                         ::testing::Values("full", "infobatch", "bls-infobatch", "bls-seta",
                                           "blr-infobatch", "ucb"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Resume, IsExactInEveryPrecisionAndLayout) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    for (const bool channels_last : {false, true}) {
      const test::ScratchFolder scratch;
      RunConfig config = test::tiny_config();
      config.training.precision = precision;
      config.training.channels_last = channels_last;
      const Result whole = run_whole(config, scratch / "whole");
      int pieces = 0;
      const Result result = run_in_pieces(config, scratch / "pieces", 5, &pieces);
      EXPECT_GT(pieces, 1);
      expect_same(whole, result, channels_last ? "channels last" : "channels first");
      EXPECT_EQ(read_run_config(scratch / "pieces"), config);
    }
  }
}

TEST(Resume, BeforeTheFirstStepIsTheWholeRun) {
  const test::ScratchFolder scratch;
  const RunConfig config = test::tiny_config();
  const Result whole = run_whole(config, scratch / "whole");
  {
    Trainer trainer = test::start(config, scratch / "run");
    EXPECT_EQ(test::run_quietly(trainer, test::stop_after(0)), Outcome::interrupted);
  }
  Trainer trainer = test::resume(scratch / "run");
  test::run_quietly(trainer);
  expect_same(whole, result_of(trainer), "before the first step");
}

TEST(Resume, OfARunKilledBeforeItsFirstCheckpointStartsAgain) {
  const test::ScratchFolder scratch;
  const RunConfig config = test::tiny_config();
  const Result whole = run_whole(config, scratch / "whole");
  { const Trainer killed = test::start(config, scratch / "run"); }
  Trainer trainer = test::resume(scratch / "run");
  test::run_quietly(trainer);
  expect_same(whole, result_of(trainer), "no checkpoint");
}

TEST(Resume, OfAFinishedRunDoesNothing) {
  const test::ScratchFolder scratch;
  const Result whole = run_whole(test::tiny_config(), scratch / "run");
  Trainer trainer = test::resume(scratch / "run");
  expect_same(whole, result_of(trainer), "before run()");
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
  expect_same(whole, result_of(trainer), "after run()");
}

// The program may die between any two changes of the folder. A copy of the folder as it was before
// a checkpoint, with files of the next one added, is what it then leaves.
TEST(Resume, IgnoresWhatACrashLeftOfTheNextCheckpoint) {
  const test::ScratchFolder scratch;
  const RunConfig config = test::tiny_config();
  const Result whole = run_whole(config, scratch / "whole");
  {
    Trainer trainer = test::start(config, scratch / "run");
    test::run_quietly(trainer, test::stop_after(11));
  }
  for (const char* name :
       {"checkpoint-2.safetensors", "checkpoint-3.safetensors", "pruner-3.safetensors",
        "checkpoint.json.tmp-1-1", "checkpoint-3.safetensors.tmp-1-1", "metrics.jsonl.tmp-1-1"}) {
    if (!fs::exists(scratch / "run" / name)) std::ofstream(scratch / "run" / name) << "half";
  }
  Trainer trainer = test::resume(scratch / "run");
  test::run_quietly(trainer);
  expect_same(whole, result_of(trainer), "with files of a crash");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch / "run")) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAre("config.json", "metrics.jsonl", "checkpoint.json",
                                              "checkpoint.safetensors", "pruner.safetensors"));
}

TEST(Resume, TakesTheLastEpochFromTheCheckpointIfItIsMissingInTheMetrics) {
  const test::ScratchFolder scratch;
  const Result whole = run_whole(test::tiny_config(), scratch / "run");
  auto metrics = runs::read_run(scratch / "run").epochs;
  metrics.pop_back();
  RunFolder::open(scratch / "run").write_metrics(metrics);
  Trainer trainer = test::resume(scratch / "run");
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
  expect_same(whole, result_of(trainer), "a line short");
  EXPECT_EQ(runs::read_run(scratch / "run").epochs.size(), 6U);
  metrics.pop_back();
  { const Trainer release = std::move(trainer); }
  RunFolder::open(scratch / "run").write_metrics(metrics);
  EXPECT_THAT([&] { test::resume(scratch / "run"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("metrics.jsonl has 4 epochs")));
}

TEST(Resume, RefusesADamagedOrMissingCheckpointFile) {
  const test::ScratchFolder scratch;
  run_whole(test::tiny_config(), scratch / "run");
  const fs::path model = scratch / "run" / "checkpoint.safetensors";
  auto bytes = test::read_bytes(model);
  bytes[bytes.size() / 2] ^= std::byte{1};
  test::write_bytes(model, bytes);
  EXPECT_THAT(
      [&] { test::resume(scratch / "run"); },
      ThrowsMessage<std::runtime_error>(HasSubstr("checkpoint.safetensors: the data are damaged")));
  fs::remove(model);
  EXPECT_THAT([&] { test::resume(scratch / "run"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("checkpoint.safetensors: cannot open")));
}

// Between two checkpoints people copy what they want to keep. A run removes only its own files.
TEST(Resume, LeavesFilesOfOthersInItsFolder) {
  const test::ScratchFolder scratch;
  const fs::path run = scratch / "run";
  {
    Trainer trainer = test::start(test::tiny_config(), run);
    test::run_quietly(trainer, test::stop_after(3));
  }
  const std::vector<std::string> files = {"checkpoint-epoch1-keep.pt", "config.json.bak",
                                          "pruner_notes.txt", "checkpointed", "records.csv"};
  for (const std::string& name : files) std::ofstream(run / name) << "mine";
  const std::vector<std::string> folders = {"checkpoint_backup", "recordings", "pruner"};
  for (const std::string& name : folders) {
    fs::create_directory(run / name);
    std::ofstream(run / name / "copy") << "mine";
  }
  Trainer trainer = test::resume(run);
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
  for (const std::string& name : files) EXPECT_TRUE(fs::exists(run / name)) << name;
  for (const std::string& name : folders) EXPECT_TRUE(fs::exists(run / name / "copy")) << name;
}

// A process that was killed between writing its checkpoint and removing the one before.
TEST(Resume, RemovesCheckpointsThatAKilledProcessLeft) {
  const test::ScratchFolder scratch;
  const fs::path run = scratch / "run";
  run_whole(test::tiny_config(), run);
  const std::vector<std::string> old = {"checkpoint-2.safetensors", "pruner-2.safetensors"};
  for (const std::string& name : old) std::ofstream(run / name) << "old";
  test::resume(run);
  for (const std::string& name : old) EXPECT_FALSE(fs::exists(run / name)) << name;
  EXPECT_TRUE(fs::exists(run / "checkpoint.safetensors"));
  EXPECT_TRUE(fs::exists(run / "pruner.safetensors"));
}

TEST(Resume, NeverReadsTheTorchScriptOfAnOlderVersion) {
  const test::ScratchFolder scratch;
  run_whole(test::tiny_config(), scratch / "run");
  std::ofstream(scratch / "run" / "checkpoint.json")
      << R"({"format": "tamis-checkpoint", "format_version": 1, "number": 3,
             "model": "checkpoint.pt", "model_crc32c": 1, "pruner": "pruner.safetensors"})";
  std::ofstream(scratch / "run" / "checkpoint.pt") << "code";
  EXPECT_THAT([&] { test::resume(scratch / "run"); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("executes nothing that a file says; finish the run with the version "
                            "that began it, or begin it again with --overwrite")));
}

TEST(Resume, RefusesPartsOutsideOfTheFolder) {
  const test::ScratchFolder scratch;
  run_whole(test::tiny_config(), scratch / "run");
  const fs::path index = scratch / "run" / "checkpoint.json";
  auto json = runs::read_json(index);
  json.erase("crc32c");
  json["model"] = "../checkpoint.safetensors";
  runs::write_sealed_json(index, json);
  EXPECT_THAT([&] { test::resume(scratch / "run"); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("model must be the name of a part of a checkpoint")));
}

// With right checksums: whoever makes a file can make these too.
TEST(Resume, RefusesWeightsThatDoNotFitItsModel) {
  const test::ScratchFolder scratch;
  run_whole(test::tiny_config(), scratch / "run");
  const fs::path path = scratch / "run" / "checkpoint.safetensors";
  const auto whole = test::read_bytes(path);
  const auto refused = [&](const std::function<void(test::ContainerParts&)>& edit,
                           const char* message) {
    test::write_bytes(path, test::rewritten(whole, edit));
    EXPECT_THAT([&] { test::resume(scratch / "run"); },
                ThrowsMessage<std::runtime_error>(HasSubstr(message)));
  };
  using Parts = test::ContainerParts;
  refused([](Parts& parts) { parts.tensors.erase(parts.tensors.begin()); }, "is missing");
  refused([](Parts& parts) { parts.tensors.front().name = "other"; }, "is missing");
  refused([](Parts& parts) { parts.tensors.front().dtype = "I32"; }, "another type or shape");
  refused([](Parts& parts) { parts.tensors.front().shape.push_back(1); }, "another type or shape");
  refused(
      [](Parts& parts) {
        parts.tensors.push_back({"more", "U8", {1}, {std::byte{0}}});
      },
      "has tensors that the model has not");
  refused([](Parts& parts) { parts.text("format") = "other"; }, "field format must be");
  test::write_bytes(path, whole);
  EXPECT_NO_THROW(test::resume(scratch / "run"));
}

TEST(Resume, RefusesTheWeightsOfAnotherStep) {
  const test::ScratchFolder scratch;
  {
    Trainer trainer = test::start(test::tiny_config(), scratch / "early");
    test::run_quietly(trainer, test::stop_after(3));
  }
  run_whole(test::tiny_config(), scratch / "run");
  fs::copy_file(scratch / "early" / "checkpoint-1.safetensors",
                scratch / "run" / "checkpoint.safetensors", fs::copy_options::overwrite_existing);
  EXPECT_THAT([&] { test::resume(scratch / "run"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("field step must be")));
}

// One digit at a time: every file of the folder has a checksum.
TEST(Resume, RefusesAChangedDigitInAnyFile) {
  const test::ScratchFolder scratch;
  run_whole(test::tiny_config(), scratch / "run");
  for (const char* const name : {"config.json", "metrics.jsonl", "checkpoint.json"}) {
    const fs::path path = scratch / "run" / name;
    const auto whole = test::read_bytes(path);
    std::size_t num_digits = 0;
    for (std::size_t at = 0; at < whole.size(); at += 7) {
      if (std::isdigit(static_cast<unsigned char>(whole[at])) == 0) continue;
      auto bytes = whole;
      bytes[at] ^= std::byte{1};  // 2 becomes 3, 3 becomes 2
      test::write_bytes(path, bytes);
      EXPECT_THROW(test::resume(scratch / "run"), std::runtime_error) << name << " at " << at;
      ++num_digits;
    }
    EXPECT_GT(num_digits, 3U) << name;
    test::write_bytes(path, whole);
  }
  EXPECT_NO_THROW(test::resume(scratch / "run"));
}

// Damage of the checksum's name must not make a file of one without.
TEST(Resume, RefusesAFileWhoseChecksumHasAnotherName) {
  const test::ScratchFolder scratch;
  run_whole(test::tiny_config(), scratch / "run");
  for (const char* const name : {"config.json", "metrics.jsonl", "checkpoint.json"}) {
    const fs::path path = scratch / "run" / name;
    const std::string whole = runs::read_text(path.native());
    std::string damaged = whole;
    damaged.replace(damaged.rfind("crc32c"), 6, "crc33c");
    runs::write_text(path, damaged);
    EXPECT_THAT([&] { test::resume(scratch / "run"); },
                ThrowsMessage<std::runtime_error>(HasSubstr("has no checksum")))
        << name;
    runs::write_text(path, whole);
  }
  EXPECT_NO_THROW(test::resume(scratch / "run"));
}

TEST(Resume, RefusesOtherData) {
  const test::ScratchFolder scratch;
  run_whole(test::tiny_config(), scratch / "run");
  const DataSplits other{test::tiny_split(119, 1), test::tiny_split(40, 2)};
  EXPECT_THAT(
      [&] {
        const Trainer trainer(read_run_config(scratch / "run"), other,
                              RunFolder::open(scratch / "run"));
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("begun with 120 training")));
}

}  // namespace tamis::training::trainer_resume_test
