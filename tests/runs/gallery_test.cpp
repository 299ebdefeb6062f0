#include "runs/gallery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "runs/base64.h"
#include "runs/seal.h"
#include "support/scratch_folder.h"

namespace tamis::runs {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Two by two grey pixels, and 300 in a row.
constexpr const char* kPicture =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4AAAADklEQVR42mP4z8DA8B8ABgAB/"
    "2U0+PcAAAAASUVORK5CYII=";
constexpr const char* kWidePicture =
    "iVBORw0KGgoAAAANSUhEUgAAASwAAAABCAAAAABBU8z1AAAADUlEQVR42mNgGAVEAwABLQABmlyHXgAAAABJRU5ErkJggg"
    "==";

Gallery example() {
  return {.score = "loss",
          .epochs = {0, 3},
          .num_never_learned = 2,
          .num_never_forgotten = 90,
          .hardest = {7, 5},
          .easiest = {5},
          .forgotten = {},
          .samples = {{.sample = 5,
                       .place = "cat/5.png",
                       .label = "cat",
                       .predicted = "dog",
                       .scores = {std::nanf(""), 0.123456F},
                       .forgotten = 3,
                       .picture = *from_base64(kPicture)},
                      {.sample = 7,
                       .place = "7",
                       .label = "dog",
                       .true_label = "cat",
                       .predicted = "dog",
                       .scores = {2.0F, 1.0F},
                       .picture = *from_base64(kPicture)}}};
}

class GalleryFile : public ::testing::Test {
 protected:
  GalleryFile() { write_gallery(folder_.path(), example()); }

  // What is said of the document with one member changed, without its checksum.
  std::string refusal(const std::string& pointer, const Json& value) {
    Json document = read_json(folder_ / kGalleryFile);
    document.erase("crc32c");
    document[Json::json_pointer(pointer)] = value;
    write_sealed_json(folder_ / kGalleryFile, document);
    try {
      read_gallery(folder_.path(), 100);
    } catch (const std::runtime_error& error) {
      write_gallery(folder_.path(), example());
      return error.what();
    }
    return "taken";
  }

  const test::ScratchFolder folder_;
};

TEST_F(GalleryFile, GivesBackWhatWasWritten) {
  const Json gallery = read_gallery(folder_.path(), 100);
  EXPECT_EQ(gallery["groups"]["hardest"], Json({7, 5}));
  const Json& sample = gallery["samples"][0];
  EXPECT_EQ(sample["picture"], kPicture);
  EXPECT_EQ(sample["scores"], Json({nullptr, 0.1235}));
  EXPECT_EQ(sample["forgotten"], 3);
  EXPECT_FALSE(sample.contains("true_label"));
  EXPECT_EQ(gallery["samples"][1]["true_label"], "cat");
}

TEST_F(GalleryFile, IsNullWhereThereIsNone) {
  const test::ScratchFolder empty;
  EXPECT_TRUE(read_gallery(empty.path(), 100).is_null());
}

TEST_F(GalleryFile, MayHaveNothingButPicturesAndNumbers) {
  write_json(
      folder_ / kGalleryFile,
      {{"format", "tamis-gallery"},
       {"format_version", 1},
       {"score", "loss"},
       {"epochs", Json::array()},
       {"groups", {{"hardest", {3}}}},
       {"samples",
        {{{"sample", 3}, {"place", "3"}, {"scores", Json::array()}, {"picture", kPicture}}}}});
  EXPECT_EQ(read_gallery(folder_.path(), 100)["samples"].size(), 1U);
}

TEST_F(GalleryFile, WithAChangedDigitIsRefused) {
  std::string text = read_text((folder_ / kGalleryFile).native());
  text.replace(text.find("0.1235"), 6, "0.1236");
  write_text(folder_ / kGalleryFile, text);
  EXPECT_THAT([&] { read_gallery(folder_.path(), 100); },
              ThrowsMessage<std::runtime_error>(HasSubstr("does not match its checksum")));
}

TEST_F(GalleryFile, IsRefusedWithTheFileThePlaceAndTheRule) {
  EXPECT_THAT(refusal("/format", "other"), HasSubstr(R"(gallery.json: format must be)"));
  EXPECT_THAT(refusal("/format_version", 3), HasSubstr("format_version must be in [1, 2]"));
  EXPECT_THAT(refusal("/score", 5), HasSubstr("score must be a text"));
  EXPECT_THAT(refusal("/epochs", {3, 3}), HasSubstr("epochs must be whole numbers in ascending"));
  EXPECT_THAT(refusal("/samples", 5), HasSubstr("samples must be an array"));
  EXPECT_THAT(refusal("/samples/1/sample", 100),
              HasSubstr("samples[1]: sample must be another number below data.num_train of "
                        "config.json (100), got 100"));
  EXPECT_THAT(refusal("/samples/1/sample", 5), HasSubstr("sample must be another number"));
  EXPECT_THAT(refusal("/samples/0/label", {1}), HasSubstr("samples[0]: label must be a text"));
  EXPECT_THAT(refusal("/samples/0/place", std::string(2000, 'x')),
              HasSubstr("place must be a text of at most 1000 bytes"));
  EXPECT_THAT(refusal("/samples/0/scores", {1.0}),
              HasSubstr("scores must be a finite number or null for each of the 2 epochs"));
  EXPECT_THAT(refusal("/samples/0/scores", {1.0, 1e300}), HasSubstr("scores must be a finite"));
  EXPECT_THAT(refusal("/samples/0/forgotten", -1), HasSubstr("forgotten must be a whole number"));
  EXPECT_THAT(refusal("/groups/hardest", {6}),
              HasSubstr("hardest must be numbers of samples that the gallery has, got 6"));
  EXPECT_THAT(refusal("/groups/best", {5}),
              HasSubstr("a name must be hardest, easiest or forgotten, got \"best\""));
}

// A page must not become a way to make a browser decode whatever somebody wrote.
TEST_F(GalleryFile, TakesNothingButSmallWholePngFiles) {
  const auto with_picture = [&](const Json& picture) {
    return refusal("/samples/0/picture", picture);
  };
  const std::string picture = kPicture;
  EXPECT_THAT(with_picture("\"><script>alert(1)</script>"),
              HasSubstr("picture must be a PNG file"));
  EXPECT_THAT(with_picture(picture.substr(1)), HasSubstr("picture must be a PNG file"));
  EXPECT_THAT(with_picture("PHN2Zz4="), HasSubstr("picture is no PNG file"));
  EXPECT_THAT(with_picture(picture.substr(0, 80)), HasSubstr("picture ends within a part of it"));
  EXPECT_THAT(with_picture(picture.substr(0, 44)), HasSubstr("picture ends"));
  EXPECT_THAT(with_picture(kWidePicture), HasSubstr("has 300 x 1 pixels, but at most 256 x 256"));
  EXPECT_THAT(with_picture(std::string(400'000, 'A')), HasSubstr("of at most 100000 bytes"));
}

}  // namespace
}  // namespace tamis::runs
