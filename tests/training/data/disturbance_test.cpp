#include "training/data/disturbance.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "support/tiny_run.h"

namespace tamis::training::disturbance_test {

std::vector<std::int64_t> class_sizes(const Dataset& data) {
  const torch::Tensor counts = torch::bincount(data.labels, {}, data.num_classes);
  return {counts.data_ptr<std::int64_t>(), counts.data_ptr<std::int64_t>() + counts.numel()};
}

std::int64_t num_different(const torch::Tensor& a, const torch::Tensor& b) {
  return a.ne(b).sum().item<std::int64_t>();
}

DataSplits make_data() { return {test::tiny_split(4000, 1), test::tiny_split(40, 2)}; }

TEST(LabelNoise, MakesExactlyItsShareOfTheTrainingLabelsWrong) {
  const DataSplits data = make_data();
  const torch::Tensor before = data.train.labels.clone();
  const DataSplits noisy = disturb(data, {.label_noise = 0.4}, 5);
  EXPECT_EQ(num_different(noisy.train.labels, data.train.labels), 1600);
  EXPECT_TRUE(noisy.train.images.equal(data.train.images));
  EXPECT_TRUE(noisy.test.labels.equal(data.test.labels));
  EXPECT_TRUE(data.train.labels.equal(before)) << "what was given must stay as it is";
  EXPECT_GE(noisy.train.labels.min().item<std::int64_t>(), 0);
  EXPECT_LT(noisy.train.labels.max().item<std::int64_t>(), 4);
}

TEST(LabelNoise, GoesToEveryOtherClassAlike) {
  const DataSplits data = make_data();
  const DataSplits noisy = disturb(data, {.label_noise = 1.0}, 5);
  const torch::Tensor shift = (noisy.train.labels - data.train.labels + 4).remainder(4);
  const torch::Tensor counts = torch::bincount(shift, {}, 4);
  EXPECT_EQ(counts[0].item<std::int64_t>(), 0);
  // 5.2 deviations of a binomial with n = 4000, p = 1/3, for three classes: below 1e-6 by chance.
  for (int k = 1; k < 4; ++k) {
    EXPECT_NEAR(counts[k].item<double>(), 4000.0 / 3.0, 5.2 * std::sqrt(4000.0 * 2.0 / 9.0));
  }
}

TEST(Imbalance, ShrinksTheClassesExponentially) {
  const DataSplits data = make_data();  // 1000 of each class
  const DataSplits tailed = disturb(data, {.imbalance = 0.01}, 5);
  EXPECT_EQ(class_sizes(tailed.train), (std::vector<std::int64_t>{1000, 215, 46, 10}));
  EXPECT_EQ(tailed.train.images.size(0), 1271);
  EXPECT_EQ(class_sizes(tailed.test), class_sizes(data.test));
}

TEST(Imbalance, KeepsImagesAndLabelsTogether) {
  const DataSplits tailed = disturb(make_data(), {.imbalance = 0.1}, 5);
  const torch::Tensor rows = tailed.train.images.to(torch::kFloat).mean({1, 3});
  EXPECT_TRUE(rows.argmax(1).equal(2 * tailed.train.labels));  // the bright row shows the class
}

TEST(Copies, AreOfFewOthersWithTheirLabels) {
  const DataSplits data = make_data();
  const DataSplits copied = disturb(data, {.copies = 0.75}, 5);
  ASSERT_EQ(copied.train.size(), 4000U);
  const torch::Tensor rows = copied.train.images.to(torch::kFloat).mean({1, 3});
  EXPECT_TRUE(rows.argmax(1).equal(2 * copied.train.labels));
  std::map<std::string, int> times;
  std::int64_t num_changed = 0;
  for (std::int64_t i = 0; i < 4000; ++i) {
    const torch::Tensor image = copied.train.images[i].contiguous();
    const auto* const bytes = image.data_ptr<std::uint8_t>();
    ++times[std::string(bytes, bytes + image.numel())];
    num_changed += image.equal(data.train.images[i]) ? 0 : 1;
  }
  EXPECT_EQ(num_changed, 3000);
  EXPECT_EQ(times.size(), 1000U);  // the originals, all different
  const auto num_copied =
      std::count_if(times.begin(), times.end(), [](const auto& one) { return one.second > 1; });
  // 3,000 copies of 300 images: that one has none is 300 * 0.0000447 by chance, 6 in 10^7 for
  // eight.
  EXPECT_GE(num_copied, 292);
  EXPECT_LE(num_copied, 300);
}

TEST(Disturbance, DependsOnTheSeedAlone) {
  const DataSplits data = make_data();
  const DataConfig config{.label_noise = 0.2, .imbalance = 0.5};
  const DataSplits a = disturb(data, config, 1);
  const DataSplits b = disturb(data, config, 1);
  const DataSplits c = disturb(data, config, 2);
  EXPECT_TRUE(a.train.labels.equal(b.train.labels));
  EXPECT_TRUE(a.train.images.equal(b.train.images));
  EXPECT_FALSE(a.train.images.equal(c.train.images));
  EXPECT_GT(num_different(disturb(data, {.label_noise = 0.2}, 1).train.labels,
                          disturb(data, {.label_noise = 0.2}, 2).train.labels),
            400);
}

TEST(Disturbance, OfNothingSharesTheMemory) {
  const DataSplits data = make_data();
  const DataSplits same = disturb(data, {}, 1);
  EXPECT_EQ(same.train.images.data_ptr(), data.train.images.data_ptr());
  EXPECT_EQ(same.train.labels.data_ptr(), data.train.labels.data_ptr());
}

}  // namespace tamis::training::disturbance_test
