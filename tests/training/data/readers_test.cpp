// The file formats: what is read is what was written, and damaged files are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/memory_limit.h"
#include "support/scratch_folder.h"
#include "training/data/cifar.h"
#include "training/data/files.h"
#include "training/data/idx.h"
#include "training/data/image_folder.h"
#include "training/data/png_image.h"

namespace tamis::training::readers_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Bytes = std::vector<std::uint8_t>;

Bytes random_bytes(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

void write(const std::filesystem::path& path, const Bytes& bytes) {
  test::write_bytes(path, std::as_bytes(std::span(bytes)));
}

void write_gz(const std::filesystem::path& path, const Bytes& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

Bytes idx_bytes(const std::vector<std::uint32_t>& shape, const Bytes& values) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(shape.size())};
  for (const std::uint32_t extent : shape) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
    }
  }
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

TEST(ReadFile, UnpacksGzipAndLeavesOtherFilesAsTheyAre) {
  const test::ScratchFolder folder;
  const Bytes bytes = random_bytes(3'000'000, 1);
  write(folder / "plain", bytes);
  write_gz(folder / "packed.gz", bytes);
  EXPECT_EQ(read_file(folder / "plain"), bytes);
  EXPECT_EQ(read_file(folder / "packed.gz"), bytes);
}

// Sanitizers need more address space than any limit.
#ifndef TAMIS_SANITIZED
TEST(ReadFile, RefusesGzipThatUnpacksToMoreThanThereIsMemory) {
  const test::ScratchFolder folder;
  write_gz(folder / "zeros.gz", Bytes(100'000'000));
  EXPECT_LT(std::filesystem::file_size(folder / "zeros.gz"), 1'000'000U);
  const test::MemoryLimit limit(rlim_t{64} << 20U);
  EXPECT_THAT([&] { read_file(folder / "zeros.gz"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("zeros.gz needs about")));
}
#endif

TEST(ReadFile, RefusesGzipThatIsCutShortOrChanged) {
  const test::ScratchFolder folder;
  write_gz(folder / "good.gz", random_bytes(50'000, 2));
  Bytes packed;
  for (const std::byte byte : test::read_bytes(folder / "good.gz")) {
    packed.push_back(static_cast<std::uint8_t>(byte));
  }
  Bytes damaged = packed;
  damaged[damaged.size() / 2] ^= 1U;
  write(folder / "damaged.gz", damaged);
  packed.resize(packed.size() / 2);
  write(folder / "short.gz", packed);
  for (const char* name : {"damaged.gz", "short.gz"}) {
    EXPECT_THAT([&] { read_file(folder / name); },
                ThrowsMessage<std::runtime_error>(HasSubstr("gzip data are damaged")))
        << name;
  }
  EXPECT_THAT([&] { read_file(folder / "absent"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("not a file")));
}

TEST(Idx, ReadsImagesAndLabelsPlainOrPacked) {
  const test::ScratchFolder folder;
  const Bytes pixels = random_bytes(5 * 3 * 4, 3);
  write(folder / "images", idx_bytes({5, 3, 4}, pixels));
  write_gz(folder / "labels.gz", idx_bytes({5}, {4, 3, 2, 1, 0}));
  const RawImages images = read_idx_images(folder / "images", folder / "labels.gz");
  EXPECT_EQ(images.count, 5);
  EXPECT_EQ(images.channels, 1);
  EXPECT_EQ(images.height, 3);
  EXPECT_EQ(images.width, 4);
  EXPECT_EQ(images.pixels, pixels);
  EXPECT_EQ(images.labels, (Bytes{4, 3, 2, 1, 0}));
}

TEST(Idx, RefusesWhatDoesNotMatchItsHeader) {
  const test::ScratchFolder folder;
  const auto expect_refused = [&](const Bytes& bytes, const char* message) {
    write(folder / "file", bytes);
    EXPECT_THAT([&] { read_idx(folder / "file"); },
                ThrowsMessage<std::runtime_error>(HasSubstr(message)));
  };
  expect_refused({}, "not an IDX file");
  expect_refused({0, 0, 9, 1, 0, 0, 0, 0}, "not an IDX file");
  expect_refused({0, 0, 8, 3, 0, 0}, "header is cut short");
  expect_refused(idx_bytes({3}, {1, 2}), "size must be 11 by its header, got 10");
  expect_refused(idx_bytes({3}, {1, 2, 3, 4}), "size must be 11 by its header, got 12");
  expect_refused(idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, {1}), "cut short");
}

TEST(Idx, RefusesAnotherNumberOfLabelsThanImages) {
  const test::ScratchFolder folder;
  write(folder / "images", idx_bytes({2, 1, 1}, {7, 8}));
  write(folder / "labels", idx_bytes({3}, {0, 1, 2}));
  EXPECT_THAT(
      [&] { read_idx_images(folder / "images", folder / "labels"); },
      ThrowsMessage<std::runtime_error>(HasSubstr("one label for each of the 2 images, got 3")));
}

// Two records of CIFAR-10: label 3 with pixels counting up, label 9 with random ones.
TEST(Cifar, ReadsTheBinaryFormOfCifar10) {
  const test::ScratchFolder folder;
  const Bytes first = random_bytes(3072, 4);
  const Bytes second = random_bytes(3072, 5);
  Bytes file{3};
  file.insert(file.end(), first.begin(), first.end());
  file.push_back(9);
  file.insert(file.end(), second.begin(), second.end());
  write(folder / "a.bin", file);
  write(folder / "b.bin", Bytes(file.begin() + 3073, file.end()));
  const RawImages images = read_cifar_binary({folder / "a.bin", folder / "b.bin"}, 1);
  EXPECT_EQ(images.count, 3);
  EXPECT_EQ(images.labels, (Bytes{3, 9, 9}));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), images.pixels.begin()));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), images.pixels.begin() + 2 * 3072));
}

TEST(Cifar, ReadsTheFineLabelsOfCifar100) {
  const test::ScratchFolder folder;
  const Bytes pixels = random_bytes(3072, 6);
  Bytes file{11, 77};  // coarse, fine
  file.insert(file.end(), pixels.begin(), pixels.end());
  write(folder / "train.bin", file);
  const RawImages images = read_cifar_binary({folder / "train.bin"}, 2);
  EXPECT_EQ(images.labels, (Bytes{77}));
  EXPECT_EQ(images.pixels, pixels);
}

TEST(Cifar, RefusesAPartialRecord) {
  const test::ScratchFolder folder;
  write(folder / "train.bin", Bytes(3073 + 100));
  EXPECT_THAT([&] { read_cifar_binary({folder / "train.bin"}, 1); },
              ThrowsMessage<std::runtime_error>(HasSubstr("multiple of 3073 bytes, got 3173")));
}

TEST(Cifar, ThePngFormHoldsTheSameImagesAsTheBinaryForm) {
  const test::ScratchFolder folder;
  const Bytes planar = random_bytes(2 * 3072, 7);
  PngImage png{.height = 2, .width = 1024, .channels = 3, .pixels = Bytes(2 * 3072)};
  Bytes binary;
  for (std::size_t i = 0; i < 2; ++i) {
    binary.push_back(static_cast<std::uint8_t>(i + 4));
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t p = 0; p < 1024; ++p) {
        const std::uint8_t value = planar[i * 3072 + c * 1024 + p];
        binary.push_back(value);
        png.pixels[(i * 1024 + p) * 3 + c] = value;
      }
    }
  }
  write_png(folder / "batch.png", png);
  write(folder / "batch.bin", binary);
  const std::string labels = "[4, 5]";
  write(folder / "labels.json", Bytes(labels.begin(), labels.end()));
  const RawImages from_png = read_cifar_png({folder / "batch.png"}, folder / "labels.json");
  const RawImages from_binary = read_cifar_binary({folder / "batch.bin"}, 1);
  EXPECT_EQ(from_png.pixels, from_binary.pixels);
  EXPECT_EQ(from_png.labels, from_binary.labels);
}

TEST(Cifar, RefusesLabelsThatAreNotAListOfBytes) {
  const test::ScratchFolder folder;
  write_png(folder / "batch.png",
            {.height = 1, .width = 1024, .channels = 3, .pixels = Bytes(3072)});
  for (const std::string text : {"{}", "[1, 2]", "[-1]", "[300]", "[1.5]", "[1"}) {
    write(folder / "labels.json", Bytes(text.begin(), text.end()));
    EXPECT_THROW(read_cifar_png({folder / "batch.png"}, folder / "labels.json"), std::runtime_error)
        << text;
  }
  // As all JSON is: looked at before it is parsed.
  const std::string deep = std::string(300, '[') + std::string(300, ']');
  write(folder / "labels.json", Bytes(deep.begin(), deep.end()));
  EXPECT_THAT([&] { read_cifar_png({folder / "batch.png"}, folder / "labels.json"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("JSON must not be deeper than 200")));
}

TEST(Png, ReturnsWhatWasWritten) {
  const test::ScratchFolder folder;
  for (const std::size_t channels : {1, 3}) {
    const PngImage image{
        .height = 5, .width = 7, .channels = channels, .pixels = random_bytes(35 * channels, 8)};
    write_png(folder / "image.png", image);
    const PngImage read = read_png(folder / "image.png");
    EXPECT_EQ(read.height, 5);
    EXPECT_EQ(read.width, 7);
    EXPECT_EQ(read.channels, channels);
    EXPECT_EQ(read.pixels, image.pixels);
  }
}

// 68 bytes that claim 46,340 x 46,340 pixels, with all checksums right.
TEST(Png, DoesNotTakeMemoryForPixelsThatAFileCannotHold) {
  const test::ScratchFolder folder;
  write(folder / "huge.png",
        {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
         0x44, 0x52, 0x00, 0x00, 0xb5, 0x04, 0x00, 0x00, 0xb5, 0x04, 0x08, 0x00, 0x00, 0x00,
         0x00, 0xd0, 0x0b, 0x73, 0x64, 0x00, 0x00, 0x00, 0x0b, 0x49, 0x44, 0x41, 0x54, 0x78,
         0x9c, 0x63, 0x60, 0x40, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x01, 0x7c, 0x4c, 0x44, 0xc2,
         0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82});
  EXPECT_THAT([&] { read_png(folder / "huge.png"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("46340 x 46340 pixels are more than")));
}

TEST(Png, RefusesADamagedFile) {
  const test::ScratchFolder folder;
  write_png(folder / "image.png",
            {.height = 9, .width = 9, .channels = 1, .pixels = random_bytes(81, 9)});
  auto bytes = test::read_bytes(folder / "image.png");
  bytes.resize(bytes.size() / 2);
  test::write_bytes(folder / "short.png", bytes);
  EXPECT_THAT([&] { read_png(folder / "short.png"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cannot read PNG")));
  EXPECT_THROW(read_png(folder / "absent.png"), std::runtime_error);
}

class ImageFolder : public ::testing::Test {
 protected:
  void add(const std::string& name, std::uint8_t value, std::size_t side = 4) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    write_png(path,
              {.height = side, .width = side, .channels = 1, .pixels = Bytes(side * side, value)});
  }
  test::ScratchFolder folder_;
};

TEST_F(ImageFolder, LabelsAreTheClassesInAlphabeticalOrder) {
  add("dog/2.png", 20);
  add("cat/1.png", 10);
  add("dog/1.png", 30);
  const auto classes = class_names(folder_.path());
  EXPECT_THAT(classes, ::testing::ElementsAre("cat", "dog"));
  const RawImages images = read_image_folder(folder_.path(), classes);
  EXPECT_EQ(images.labels, (Bytes{0, 1, 1}));
  EXPECT_EQ(images.pixels[0], 10);
  EXPECT_EQ(images.pixels[16], 30);
  EXPECT_EQ(images.pixels[32], 20);
}

TEST_F(ImageFolder, RefusesImagesOfDifferentSizes) {
  add("cat/1.png", 1, 4);
  add("cat/2.png", 1, 5);
  EXPECT_THAT(
      [&] { read_image_folder(folder_.path(), {"cat"}); },
      ThrowsMessage<std::runtime_error>(HasSubstr("must have one size, 4 x 4 x 1, got 5 x 5 x 1")));
}

TEST_F(ImageFolder, RefusesAFolderWithoutClassesOrImages) {
  EXPECT_THROW(class_names(folder_.path()), std::runtime_error);
  EXPECT_THROW(class_names(folder_ / "absent"), std::runtime_error);
  std::filesystem::create_directories(folder_ / "cat");
  EXPECT_THROW(read_image_folder(folder_.path(), {"cat"}), std::runtime_error);
  EXPECT_THROW(read_image_folder(folder_.path(), {"dog"}), std::runtime_error);
}

}  // namespace tamis::training::readers_test
