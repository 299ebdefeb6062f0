// Batches: normalisation, crops and flips.
#include "training/data/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tamis::training::batch_test {

// Random images of a size that is not square, so that rows and columns cannot be mixed up.
Dataset random_data(std::int64_t count, std::int64_t channels) {
  torch::manual_seed(5);
  Dataset data;
  data.images = torch::randint(1, 256, {count, channels, 9, 12}, torch::kUInt8);
  data.labels = torch::arange(count) % 7;
  data.num_classes = 7;
  for (std::int64_t c = 0; c < channels; ++c) {
    data.mean.push_back(0.4F + 0.1F * static_cast<float>(c));
    data.stddev.push_back(0.2F + 0.1F * static_cast<float>(c));
  }
  return data;
}

torch::Tensor normalised(const Dataset& data, const torch::Tensor& images) {
  const torch::Tensor mean = torch::tensor(data.mean).view({1, -1, 1, 1});
  const torch::Tensor stddev = torch::tensor(data.stddev).view({1, -1, 1, 1});
  return (images.to(torch::kFloat) / 255.0 - mean) / stddev;
}

TEST(MakeBatch, NormalisesEachChannelAndKeepsTheOrderOfTheIndices) {
  const Dataset data = random_data(50, 3);
  const std::vector<SampleIndex> indices{49, 0, 7, 7, 20};
  const Batch batch = make_batch(data, indices);
  const torch::Tensor rows = torch::tensor({49, 0, 7, 7, 20});
  EXPECT_TRUE(torch::allclose(batch.data, normalised(data, data.images.index_select(0, rows))));
  EXPECT_TRUE(torch::equal(batch.target, data.labels.index_select(0, rows)));
}

class Border : public ::testing::TestWithParam<bool> {};

// Every augmented image is one of the (2p + 1)^2 * 2 crops and flips of the padded original.
TEST_P(Border, AugmentedImagesAreCropsOfThePaddedImagePossiblyMirrored) {
  const bool mirrors = GetParam();
  const Dataset data = random_data(200, 2);
  std::vector<SampleIndex> indices(200);
  std::iota(indices.begin(), indices.end(), SampleIndex{0});
  const Augmentation augmentation{.padding = 2, .mirrors_border = mirrors, .flip = true, .seed = 3};
  const Batch batch = make_batch(data, indices, augmentation, 4);
  const torch::Tensor padded =
      mirrors ? torch::reflection_pad2d(data.images.to(torch::kFloat), {2, 2, 2, 2})
              : torch::constant_pad_nd(data.images, {2, 2, 2, 2});
  std::array<int, 50> seen{};
  for (std::int64_t i = 0; i < 200; ++i) {
    int matches = 0;
    for (std::int64_t option = 0; option < 50; ++option) {
      torch::Tensor crop = padded[i].slice(1, option / 10, option / 10 + 9);
      crop = crop.slice(2, option / 2 % 5, option / 2 % 5 + 12);
      if (option % 2 == 1) crop = crop.flip({2});
      if (torch::allclose(batch.data[i], normalised(data, crop.unsqueeze(0))[0])) {
        ++matches;
        ++seen[static_cast<std::size_t>(option)];
      }
    }
    EXPECT_EQ(matches, 1) << "sample " << i;
  }
  // 200 samples fall on 50 options; fewer than 40 of them used happens once in 10^11 cases.
  EXPECT_GE(std::count_if(seen.begin(), seen.end(), [](int n) { return n > 0; }), 40);
}

INSTANTIATE_TEST_SUITE_P(MakeBatch, Border, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "MirroredAtTheEdge" : "Black"; });

TEST(MakeBatch, AugmentationDependsOnSeedEpochAndSampleAlone) {
  const Dataset data = random_data(64, 1);
  const Augmentation augmentation{.seed = 11};
  const Batch batch = make_batch(data, std::vector<SampleIndex>{3, 60, 17}, augmentation, 2);
  const Batch other = make_batch(data, std::vector<SampleIndex>{17, 5}, augmentation, 2);
  EXPECT_TRUE(torch::equal(batch.data[2], other.data[0]));
  std::vector<SampleIndex> all(64);
  std::iota(all.begin(), all.end(), SampleIndex{0});
  const torch::Tensor reference = make_batch(data, all, augmentation, 2).data;
  EXPECT_FALSE(torch::equal(reference, make_batch(data, all, augmentation, 3).data));
  EXPECT_FALSE(torch::equal(reference, make_batch(data, all, {.seed = 12}, 2).data));
  torch::manual_seed(99);
  EXPECT_TRUE(torch::equal(reference, make_batch(data, all, augmentation, 2).data));
}

// 4,000 draws from 9 offsets and 2 directions; each bound is 6 standard deviations (false alarm
// below 1e-7 for the whole test).
TEST(MakeBatch, OffsetsAndFlipsAreUniform) {
  Dataset data;
  data.images = torch::zeros({1, 1, 15, 21}, torch::kUInt8);
  data.images.index_put_({0, 0, 7, 10}, 255);  // the brightest pixel shows the offset
  data.images.index_put_({0, 0, 7, 11}, 128);  // and its neighbour the direction
  data.labels = torch::zeros({1}, torch::kInt64);
  data.mean = {0.0F};
  data.stddev = {1.0F};
  std::array<int, 9> rows{};
  std::array<int, 9> columns{};
  int flips = 0;
  const int draws = 4000;
  for (int epoch = 0; epoch < draws; ++epoch) {
    const Batch batch = make_batch(data, std::vector<SampleIndex>{0}, {.seed = 1},
                                   static_cast<std::uint64_t>(epoch));
    const torch::Tensor image = batch.data[0][0];
    const auto bright = image.argmax().item<std::int64_t>();
    const std::int64_t row = bright / 21;
    const std::int64_t column = bright % 21;
    const bool flipped = image[row][column - 1].item<float>() > 0.4F;
    ++rows.at(static_cast<std::size_t>(row - 3));
    ++columns.at(static_cast<std::size_t>((flipped ? 20 - column : column) - 6));
    flips += flipped ? 1 : 0;
  }
  const auto expect_near = [&](int count, double share) {
    EXPECT_NEAR(count, draws * share, 6.0 * std::sqrt(draws * share * (1 - share)));
  };
  for (const int count : rows) expect_near(count, 1.0 / 9);
  for (const int count : columns) expect_near(count, 1.0 / 9);
  expect_near(flips, 0.5);
}

TEST(MakeBatch, WithoutPaddingAndFlipChangesNothing) {
  const Dataset data = random_data(10, 1);
  const std::vector<SampleIndex> indices{1, 2, 3};
  const Batch plain = make_batch(data, indices);
  const Batch augmented = make_batch(data, indices, {.padding = 0, .flip = false}, 8);
  EXPECT_TRUE(torch::equal(plain.data, augmented.data));
}

TEST(MakeBatch, AcceptsAPaddingLargerThanTheImage) {
  const Dataset data = random_data(40, 1);
  std::vector<SampleIndex> all(40);
  std::iota(all.begin(), all.end(), SampleIndex{0});
  const Batch batch = make_batch(data, all, {.padding = 30}, 1);
  const float black = (0.0F - data.mean[0]) / data.stddev[0];
  EXPECT_GE(batch.data.min().item<float>(), black);
  EXPECT_TRUE(batch.data.eq(black).any().item<bool>());
}

TEST(MakeBatch, RefusesAnIndexOutOfRangeAndANegativePadding) {
  const Dataset data = random_data(10, 1);
  const std::vector<SampleIndex> bad{3, 10};
  EXPECT_THAT([&] { make_batch(data, bad); },
              ::testing::ThrowsMessage<std::out_of_range>(::testing::HasSubstr("[0, 10), got 10")));
  const std::vector<SampleIndex> good{3};
  EXPECT_THROW(make_batch(data, good, {.padding = -1}, 0), std::invalid_argument);
}

}  // namespace tamis::training::batch_test
