// The gallery of a run: it changes nothing, has the right samples, and survives interruptions.
#include "runs/gallery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runs/base64.h"
#include "runs/sample_list.h"
#include "runs/seal.h"
#include "support/scratch_folder.h"
#include "support/tiny_run.h"
#include "training/data/png_image.h"
#include "training/trainer/gallery_maker.h"

namespace tamis::training::gallery_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RunConfig gallery_config(const std::string& method = "bls-infobatch") {
  RunConfig config = test::tiny_config(method);
  config.num_pictures = 5;
  return config;
}

Json train(const RunConfig& config, const fs::path& path) {
  Trainer trainer = test::start(config, path);
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
  return runs::read_gallery(path, 120);
}

TEST(Gallery, TrainsBitForBitAsWithoutIt) {
  const test::ScratchFolder scratch;
  Trainer plain = test::start(test::tiny_config(), scratch / "plain");
  Trainer shown = test::start(gallery_config(), scratch / "shown");
  test::run_quietly(plain);
  test::run_quietly(shown);
  EXPECT_TRUE(test::same_bits(test::weights_of(plain), test::weights_of(shown)));
  EXPECT_EQ(test::timeless(plain.metrics()), test::timeless(shown.metrics()));
  EXPECT_FALSE(fs::exists(scratch / "plain/gallery.json"));
  EXPECT_FALSE(fs::exists(scratch / "plain/samples.json"));
}

TEST(Gallery, HasThePicturesOfItsSamples) {
  const test::ScratchFolder scratch;
  const Json gallery = train(gallery_config(), scratch / "run");
  EXPECT_EQ(gallery["groups"]["hardest"].size(), 5U);
  EXPECT_EQ(gallery["groups"]["easiest"].size(), 5U);
  EXPECT_EQ(gallery["epochs"].size(), 6U);
  std::set<std::uint64_t> shown;
  for (const auto& [name, group] : gallery["groups"].items()) {
    for (const Json& number : group) shown.insert(number.get<std::uint64_t>());
  }
  ASSERT_EQ(gallery["samples"].size(), shown.size());
  const Dataset& data = test::tiny_data().train;
  for (const Json& sample : gallery["samples"]) {
    const auto number = sample["sample"].get<std::int64_t>();
    EXPECT_EQ(sample["label"], std::to_string(number % 4));
    EXPECT_EQ(sample["place"], std::to_string(number));
    test::write_bytes(scratch / "png", *runs::from_base64(sample["picture"].get<std::string>()));
    const PngImage picture = read_png(scratch / "png");
    ASSERT_EQ(picture.pixels.size(), 64U);
    const auto* const pixels = data.images[number].const_data_ptr<std::uint8_t>();
    EXPECT_TRUE(std::equal(picture.pixels.begin(), picture.pixels.end(), pixels)) << number;
  }
}

// Labels that are made wrong are what a model does not learn in a few epochs.
TEST(Gallery, ShowsWrongLabelsAmongTheHardestAndNoneAmongTheEasiest) {
  const test::ScratchFolder scratch;
  RunConfig config = gallery_config("full");
  config.data.label_noise = 0.1;
  const Json gallery = train(config, scratch / "run");
  std::map<std::uint64_t, Json> samples;
  for (const Json& sample : gallery["samples"]) {
    samples[sample["sample"].get<std::uint64_t>()] = sample;
  }
  for (const Json& number : gallery["groups"]["hardest"]) {
    const Json& sample = samples[number.get<std::uint64_t>()];
    ASSERT_TRUE(sample.contains("true_label"));
    EXPECT_EQ(sample["true_label"], std::to_string(number.get<std::uint64_t>() % 4));
    EXPECT_NE(sample["true_label"], sample["label"]);
  }
  for (const Json& number : gallery["groups"]["easiest"]) {
    const Json& sample = samples[number.get<std::uint64_t>()];
    EXPECT_FALSE(sample.contains("true_label"));
    EXPECT_EQ(sample["predicted"], sample["label"]);
  }
  EXPECT_EQ(runs::read_samples(scratch / "run", 120)->true_labels.size(), 120U);
}

TEST(Gallery, OfAnInterruptedRunIsThatOfTheRunThatWasNot) {
  const test::ScratchFolder scratch;
  const Json whole = train(gallery_config(), scratch / "whole");
  for (const int every : {1, 7}) {
    const fs::path path = scratch / std::to_string(every);
    Outcome outcome = Outcome::interrupted;
    {
      Trainer trainer = test::start(gallery_config(), path);
      outcome = test::run_quietly(trainer, test::stop_after(every));
      EXPECT_FALSE(fs::exists(path / "gallery.json"));
    }
    for (int pieces = 0; outcome == Outcome::interrupted && pieces < 1000; ++pieces) {
      Trainer trainer = test::resume(path);
      outcome = test::run_quietly(trainer, test::stop_after(every));
    }
    EXPECT_EQ(runs::read_gallery(path, 120), whole) << every;
    EXPECT_EQ(test::read_bytes(path / "gallery.json"),
              test::read_bytes(scratch / "whole/gallery.json"));
  }
}

TEST(Gallery, LeavesNoHistoryInAFinishedRun) {
  const test::ScratchFolder scratch;
  train(gallery_config(), scratch / "run");
  for (const auto& entry : fs::directory_iterator(scratch / "run")) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(::testing::StartsWith("history")));
  }
  Trainer trainer = test::resume(scratch / "run");
  EXPECT_EQ(test::run_quietly(trainer), Outcome::finished);
}

TEST(Gallery, WithoutItsHistoryIsRefused) {
  const test::ScratchFolder scratch;
  {
    Trainer trainer = test::start(gallery_config(), scratch / "run");
    test::run_quietly(trainer, test::stop_after(9));
  }
  Json checkpoint = runs::read_json(scratch / "run/checkpoint.json");
  for (const char* key : {"crc32c", "history"}) checkpoint.erase(key);
  runs::write_sealed_json(scratch / "run/checkpoint.json", checkpoint);
  EXPECT_THAT([&] { test::resume(scratch / "run"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("checkpoint.json: names no history")));
}

TEST(Gallery, IsSmallForLargePictures) {
  Dataset data{.name = "large",
               .images = torch::full({2, 3, 100, 200}, 7, torch::kUInt8),
               .labels = torch::zeros({2}, torch::kInt64),
               .num_classes = 4,
               .mean = {0.5F, 0.5F, 0.5F},
               .stddev = {1.0F, 1.0F, 1.0F},
               .classes = {"c\xff", "b", "c", "d"},
               .files = {"train/a/1.png", "train/a/2.png"}};
  const auto model = make_initial_model(test::tiny_config(), data);
  SampleHistory history(2, 1);
  const std::vector<SampleIndex> samples = {0, 1};
  const std::vector<float> losses = {1.0F, 2.0F};
  const bool is_right[] = {true, false};
  history.visit(samples, losses, is_right);
  history.end_epoch(0);
  const runs::Gallery gallery = make_gallery(history, data, *model, 1);
  ASSERT_EQ(gallery.samples.size(), 2U);
  EXPECT_EQ(gallery.hardest, std::vector<std::uint64_t>{1});
  EXPECT_EQ(gallery.easiest, std::vector<std::uint64_t>{0});
  EXPECT_EQ(gallery.num_never_learned, 1U);
  EXPECT_EQ(gallery.num_never_forgotten, 1U);
  EXPECT_EQ(gallery.samples[1].place, "train/a/2.png");
  EXPECT_EQ(gallery.samples[1].label, "c\xef\xbf\xbd");  // not UTF-8 in the folder's name
  const test::ScratchFolder scratch;
  test::write_bytes(scratch / "png", gallery.samples[0].picture);
  const PngImage picture = read_png(scratch / "png");
  EXPECT_EQ(picture.width, 64U);
  EXPECT_EQ(picture.height, 32U);
  EXPECT_EQ(picture.channels, 3U);
  EXPECT_EQ(picture.pixels[0], 7);
}

TEST(Gallery, SaysWhereASampleOfAPartOfTheDataComesFrom) {
  const Dataset part = test::tiny_data().train.select(torch::tensor({4, 9}, torch::kInt64));
  EXPECT_EQ(list_samples(part).indices, (std::vector<std::uint64_t>{4, 9}));
  const Dataset smaller = part.select(torch::tensor({1}, torch::kInt64));
  EXPECT_EQ(list_samples(smaller).place(0), "9");
}

}  // namespace tamis::training::gallery_test
