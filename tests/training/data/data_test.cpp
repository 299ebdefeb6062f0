// load_data: the real Fashion-MNIST, folders, and what it says when files are missing or wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "support/scratch_folder.h"
#include "training/data/dataset.h"
#include "training/data/known_data.h"
#include "training/data/png_image.h"

namespace tamis::training::data_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const DataSplits& fashion_mnist() {
  static const DataSplits splits = load_data("fashion-mnist");
  return splits;
}

TEST(LoadData, ReadsAllOfFashionMnist) {
  const DataSplits& splits = fashion_mnist();
  EXPECT_EQ(splits.train.images.sizes(), (std::vector<std::int64_t>{60000, 1, 28, 28}));
  EXPECT_EQ(splits.test.images.sizes(), (std::vector<std::int64_t>{10000, 1, 28, 28}));
  EXPECT_EQ(splits.train.images.scalar_type(), torch::kUInt8);
  EXPECT_EQ(splits.train.labels.scalar_type(), torch::kInt64);
  EXPECT_EQ(splits.train.num_classes, 10);
  // Every class has 6,000 training and 1,000 test images.
  EXPECT_TRUE(torch::bincount(splits.train.labels).eq(6000).all().item<bool>());
  EXPECT_TRUE(torch::bincount(splits.test.labels).eq(1000).all().item<bool>());
}

TEST(LoadData, TheKnownMeanAndDeviationAreThoseOfTheTrainingImages) {
  const Dataset& train = fashion_mnist().train;
  const torch::Tensor pixels = train.images.to(torch::kDouble) / 255.0;
  EXPECT_NEAR(train.mean[0], pixels.mean().item<double>(), 1e-4);
  EXPECT_NEAR(train.stddev[0], pixels.std().item<double>(), 1e-4);
}

TEST(LoadData, FirstTakesThatManySamplesAndNoMoreThanThereAre) {
  const Dataset& train = fashion_mnist().train;
  EXPECT_EQ(train.first(100).size(), 100);
  EXPECT_EQ(train.first(100).labels.size(0), 100);
  EXPECT_EQ(train.first(1'000'000).size(), 60000);
}

TEST(LoadData, SaysWhatToInstallOrFetchWhenFilesAreMissing) {
  const test::ScratchFolder folder;
  EXPECT_THAT([&] { load_data("fashion-mnist", {.data_dir = folder.path()}); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr(folder.path().string()), HasSubstr("apt-get install"))));
  for (const char* name : {"mnist", "cifar10"}) {
    EXPECT_THAT([&] { load_data(name, {.data_dir = folder.path()}); },
                ThrowsMessage<std::runtime_error>(HasSubstr("make data")));
  }
  EXPECT_THAT([&] { load_data("cifar100", {.data_dir = folder.path()}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cifar-100-binary")));
}

TEST(LoadData, NamesTheDataSetsThatExist) {
  EXPECT_THAT([] { load_data("imagenet"); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("fashion-mnist"), HasSubstr("got imagenet"))));
  EXPECT_THAT(data_names(),
              ::testing::ElementsAre("fashion-mnist", "mnist", "cifar10", "cifar100", "folder"));
}

TEST(Verify, RefusesOneChangedPixelOrLabel) {
  const KnownData& known = find_known_data("fashion-mnist");
  RawImages images = read_known_data(known, Split::test, {});
  EXPECT_NO_THROW(verify(images, known, Split::test));
  images.pixels[4'000'000] ^= 1U;
  EXPECT_THAT([&] { verify(images, known, Split::test); },
              ThrowsMessage<std::runtime_error>(HasSubstr("checksum")));
  images.pixels[4'000'000] ^= 1U;
  images.labels[0] = static_cast<std::uint8_t>((images.labels[0] + 1) % 10);
  EXPECT_THAT([&] { verify(images, known, Split::test); },
              ThrowsMessage<std::runtime_error>(HasSubstr("checksum")));
}

TEST(Verify, RefusesAnotherNumberOfSamplesOrALabelOutOfRange) {
  const KnownData& known = find_known_data("cifar100");
  RawImages images{.count = 10000,
                   .channels = 3,
                   .height = 1,
                   .width = 1,
                   .pixels = std::vector<std::uint8_t>(30000),
                   .labels = std::vector<std::uint8_t>(10000)};
  EXPECT_NO_THROW(verify(images, known, Split::test));
  EXPECT_THAT([&] { verify(images, known, Split::train); },
              ThrowsMessage<std::runtime_error>(HasSubstr("must have 50000 samples, got 10000")));
  images.labels[17] = 100;
  EXPECT_THAT([&] { verify(images, known, Split::test); },
              ThrowsMessage<std::runtime_error>(HasSubstr("labels must be below 100, got 100")));
}

// Writes binary CIFAR files of `count` records with labels 0, 1, 2, ...
void write_records(const fs::path& path, std::size_t count, std::size_t label_bytes) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.resize(bytes.size() + label_bytes, static_cast<std::byte>(i));
    bytes.resize(bytes.size() + 3072, static_cast<std::byte>(10 * i));
  }
  fs::create_directories(path.parent_path());
  test::write_bytes(path, bytes);
}

TEST(LoadData, ReadsTheOfficialBinaryFoldersOfCifar) {
  const test::ScratchFolder folder;
  for (int i = 1; i <= 5; ++i) {
    write_records(folder / ("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin"), 2, 1);
  }
  write_records(folder / "cifar-10-batches-bin/test_batch.bin", 3, 1);
  write_records(folder / "cifar-100-binary/train.bin", 4, 2);
  write_records(folder / "cifar-100-binary/test.bin", 1, 2);
  const DataOptions options{.data_dir = folder.path(), .verify = false};
  const DataSplits ten = load_data("cifar10", options);
  EXPECT_EQ(ten.train.size(), 10);
  EXPECT_EQ(ten.test.size(), 3);
  EXPECT_EQ(ten.test.labels[2].item<std::int64_t>(), 2);
  EXPECT_EQ(ten.test.images[2][1][5][5].item<int>(), 20);
  EXPECT_EQ(ten.train.channels(), 3);
  const DataSplits hundred = load_data("cifar100", options);
  EXPECT_EQ(hundred.train.size(), 4);
  EXPECT_EQ(hundred.train.num_classes, 100);
  // The real ones have 50,000.
  EXPECT_THAT([&] { load_data("cifar10", {.data_dir = folder.path()}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("must have 50000 samples, got 10")));
}

TEST(LoadData, ReadsAFolderPerClassAndMeasuresTheTrainingImages) {
  const test::ScratchFolder folder;
  const auto add = [&](const char* name, std::uint8_t value) {
    fs::create_directories((folder / name).parent_path());
    write_png(
        folder / name,
        {.height = 8, .width = 8, .channels = 1, .pixels = std::vector<std::uint8_t>(64, value)});
  };
  add("train/a/0.png", 0);
  add("train/b/0.png", 255);
  add("test/a/0.png", 100);
  add("test/b/0.png", 100);
  const DataSplits splits = load_data("folder", {.data_dir = folder.path()});
  EXPECT_EQ(splits.train.num_classes, 2);
  EXPECT_FLOAT_EQ(splits.train.mean[0], 0.5F);
  EXPECT_FLOAT_EQ(splits.train.stddev[0], 0.5F);
  EXPECT_EQ(splits.test.mean, splits.train.mean);
  EXPECT_EQ(splits.test.stddev, splits.train.stddev);
  EXPECT_EQ(splits.test.labels[1].item<std::int64_t>(), 1);
}

}  // namespace tamis::training::data_test
