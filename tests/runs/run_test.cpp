#include "runs/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/former_name.h"
#include "runs/seal.h"
#include "support/scratch_folder.h"

namespace tamis::runs {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void write(const test::ScratchFolder& scratch, const std::string& config,
           const std::string& metrics) {
  std::ofstream(scratch / "config.json") << config;
  std::ofstream(scratch / "metrics.jsonl") << metrics;
}

// The smallest folder that keeps the contract, as docs/run_folder.md shows it.
constexpr const char* kSmallest = R"({
  "format": "tamis-run", "format_version": 2,
  "method": {"name": "bls-infobatch"}, "seed": 3, "epochs": 2,
  "data": {"name": "coco", "num_train": 100},
  "metrics": [{"name": "mAP", "unit": "fraction", "direction": "higher", "headline": true},
              {"name": "loss", "direction": "lower"}]})";

// Ranks whose shares differ train on a few samples twice.
TEST(Run, OfSeveralProcessesMayHavePadding) {
  const test::ScratchFolder scratch;
  write(scratch, kSmallest,
        R"({"epoch": 0, "samples": 101, "pruned": 0, "train_seconds": 9, "values": {}})"
        "\n"
        R"({"epoch": 1, "samples": 61, "pruned": 40, "train_seconds": 6, "values": {"mAP": 0.25}})"
        "\n");
  EXPECT_TRUE(read_run(scratch.path()).is_finished());
}

TEST(Run, IsReadFromTheSmallestFolder) {
  const test::ScratchFolder scratch;
  write(scratch, kSmallest,
        R"({"epoch": 0, "samples": 100, "pruned": 0, "train_seconds": 9, "values": {"loss": NaN}})"
        "\n"
        R"({"epoch": 1, "samples": 60, "pruned": 40, "train_seconds": 6, "values": {"mAP": 0.25}})"
        "\n");
  const auto run = read_run(scratch.path());
  EXPECT_TRUE(run.is_finished());
  EXPECT_EQ(run.method, "bls-infobatch");
  EXPECT_EQ(run.name, "bls-infobatch");
  EXPECT_EQ(run.seed, 3U);
  EXPECT_EQ(run.num_train, 100U);
  EXPECT_EQ(run.headline().name, "mAP");
  EXPECT_EQ(run.metrics[1].direction, Direction::lower);
  EXPECT_EQ(describe_task(run.config), "coco");
  EXPECT_EQ(summarize_run(run).value, 0.25);
  EXPECT_DOUBLE_EQ(summarize_run(run).pruned_share, 0.2);
}

// A damaged name of the checksum would take it off its line.
TEST(Run, HasChecksumsOnAllLinesOrOnNone) {
  const test::ScratchFolder scratch;
  const Json first = {{"epoch", 0},
                      {"samples", 100},
                      {"pruned", 0},
                      {"train_seconds", 9},
                      {"values", Json::object()}};
  const std::string sealed = sealed_line(first);
  std::string renamed = sealed;
  renamed.replace(renamed.find("crc32c"), 6, "crc22c");
  std::string second = sealed_line({{"epoch", 1},
                                    {"samples", 100},
                                    {"pruned", 0},
                                    {"train_seconds", 9},
                                    {"values", {{"mAP", 0.5}}}});
  write(scratch, kSmallest, sealed + "\n" + second + "\n");
  EXPECT_TRUE(read_run(scratch.path()).is_finished());
  const auto refusal = [&](const std::string& config, const std::string& lines) {
    write(scratch, config, lines);
    return [&] { read_run(scratch.path()); };
  };
  EXPECT_THAT(refusal(kSmallest, renamed + "\n" + second + "\n"),
              ThrowsMessage<std::runtime_error>(HasSubstr(
                  "line 1: has no checksum: it is damaged, or was changed by hand; whoever "
                  "changed it removes the member \"crc32c\" from config.json and from "
                  "every line of metrics.jsonl, and sets format_version to 2")));
  // From version 3 on, config.json says that all of them have it.
  Json config = parse_json(kSmallest, "");
  config["format_version"] = 3;
  EXPECT_NO_THROW(refusal(sealed_line(config), sealed + "\n")());
  EXPECT_THAT(refusal(sealed_line(config), renamed + "\n"),
              ThrowsMessage<std::runtime_error>(HasSubstr("line 1: has no checksum")));
  EXPECT_THAT(refusal(config.dump(), sealed + "\n"),
              ThrowsMessage<std::runtime_error>(HasSubstr("config.json: has no checksum")));
}

TEST(Run, WithoutMetricsHasNotBegun) {
  const test::ScratchFolder scratch;
  std::ofstream(scratch / "config.json") << kSmallest;
  EXPECT_TRUE(read_run(scratch.path()).epochs.empty());
}

TEST(Run, ALastLineThatIsBeingWrittenIsLeftOut) {
  const test::ScratchFolder scratch;
  write(scratch, kSmallest,
        R"({"epoch": 0, "samples": 100, "pruned": 0, "train_seconds": 9, "values": {}})"
        "\n{\"epoch\": 1, \"sam");
  EXPECT_EQ(read_run(scratch.path()).epochs.size(), 1U);
}

TEST(Run, MustGiveTheHeadlineAfterTheLastEpoch) {
  const test::ScratchFolder scratch;
  const std::string end = R"(, "samples": 100, "pruned": 0, "train_seconds": 9, "values": {}})";
  write(scratch, kSmallest, "{\"epoch\": 0" + end + "\n{\"epoch\": 1" + end + "\n");
  EXPECT_THAT([&] { read_run(scratch.path()); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("line 2: values: mAP must be a finite number after the last epoch")));
}

// As the program wrote it when accuracy was wired in and it had another name.
TEST(Run, OfVersion1AndTheFormerNameIsRead) {
  const test::ScratchFolder scratch;
  const std::string format(detail::kFormerName);
  write(scratch,
        R"({"format": ")" + format +
            R"(-run", "format_version": 1, "name": "bls-seta", "method": "bls-seta",
    "data": {"name": "fashion-mnist", "data_dir": "", "num_train": 60000},
    "model": {"name": "small-cnn", "width": 1.0, "parameters": 105866},
    "training": {"epochs": 1, "batch_size": 128, "seed": 7, "threads": 2},
    "pruning": {"score": {"name": "batch-loss", "options": {"alpha": 0.7}},
                "policy": {"name": "seta", "options": {}}, "delta": 0.875, "seed": 7},
    "environment": {"cores": 2}})",
        R"({"epoch":0,"samples":45000,"pruned":15000,"steps":352,"train_loss":0.9,)"
        R"("train_accuracy":0.7,"test_loss":0.5,"test_accuracy":0.8,"learning_rate":0.1,)"
        R"("train_seconds":5.5,"prune_seconds":0.01,"test_seconds":0.7})"
        "\n");
  const auto run = read_run(scratch.path());
  EXPECT_EQ(run.method, "bls-seta");
  EXPECT_EQ(run.seed, 7U);
  EXPECT_TRUE(run.is_finished());
  EXPECT_EQ(run.headline().name, "test_accuracy");
  EXPECT_EQ(summarize_run(run).value, 0.8);
  EXPECT_EQ(run.epochs[0].value({.name = "train_loss"}), 0.9);
  EXPECT_EQ(run.config["format"], "tamis-run");
  EXPECT_EQ(run.config["method"]["policy"]["name"], "seta");
  EXPECT_FALSE(run.config.contains("pruning"));
  EXPECT_FALSE(run.config["training"].contains("seed"));
  EXPECT_EQ(describe_task(run.config), "fashion-mnist, small-cnn");
}

TEST(Run, OfVersion1MustSayWithAnObjectHowItPruned) {
  const test::ScratchFolder scratch;
  write(scratch,
        R"({"format": "tamis-run", "format_version": 1, "method": "full",
    "data": {"name": "mnist", "num_train": 10}, "training": {"epochs": 1, "seed": 7},
    "pruning": ["full"]})",
        "");
  EXPECT_THAT([&] { read_run(scratch.path()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("pruning must be an object")));
}

TEST(Json, DamageIsNamed) {
  const test::ScratchFolder scratch;
  EXPECT_THAT([&] { read_json(scratch / "none.json"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("none.json")));
  std::ofstream(scratch / "bad.json") << "{\n  x";
  EXPECT_THAT([&] { read_json(scratch / "bad.json"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("bad.json: not valid JSON at line 2")));
}

}  // namespace
}  // namespace tamis::runs
