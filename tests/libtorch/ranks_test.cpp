// A handler on several ranks, here threads.
#include "support/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <tuple>
#include <vector>

#include "support/coded_data.h"
#include "support/scratch_folder.h"

namespace tamis::libtorch::ranks_test {

using test::CodedDataset;
using torch::data::DataLoaderOptions;

constexpr std::size_t kRanks = 3;
constexpr std::size_t kSharedSamples = 100;

class Ranks : public ::testing::TestWithParam<std::tuple<Layout, Booking>> {
 protected:
  static PrunerOptions options() {
    return {.num_samples = kSharedSamples,
            .num_epochs = 4,
            .policy = {"infobatch"},
            .score = Spec{"last-batch-loss"},
            .delta = 1.0,
            .seed = 5,
            .layout = std::get<Layout>(GetParam())};
  }
  // One epoch; calls `seen` with every batch.
  template <typename Seen>
  static void train(Handler& handler, const Seen& seen) {
    const auto loader_options = DataLoaderOptions(8).workers(2);
    const auto walk = [&](auto& batches) {
      for (auto& batch : batches) {
        seen(batch);
        handler.update(batch.losses.mean());
      }
    };
    auto dataset = handler.wrap(CodedDataset(kSharedSamples));
    if (std::get<Booking>(GetParam()) == Booking::by_delivery) {
      auto loader = handler.loader(std::move(dataset), loader_options);
      walk(loader);
    } else {
      auto loader = torch::data::make_data_loader(std::move(dataset),
                                                  handler.sampler(loader_options), loader_options);
      walk(*loader);
    }
  }
};

TEST_P(Ranks, ShareEveryEpochAndScoreEverySampleByItsBatch) {
  std::mutex mutex;
  std::vector<std::size_t> visits(kSharedSamples);
  std::vector<float> expected(kSharedSamples);
  std::vector<std::size_t> num_batches;
  tamis::test::run_ranks(kRanks, [&](const std::shared_ptr<Communicator>& communicator) {
    Handler handler(options(), communicator);
    std::size_t count = 0;
    train(handler, [&](const auto& batch) {
      const std::scoped_lock lock(mutex);
      ++count;
      for (const SampleIndex index : batch.sample_indices) {
        const auto i = static_cast<std::size_t>(index);
        if (visits[i]++ == 0) expected[i] = batch.losses.mean().template item<float>();
      }
    });
    handler.set_epoch(1);  // collective: the losses of all ranks arrive
    const std::vector<float> scores = handler.pruner().scores();
    const std::scoped_lock lock(mutex);
    num_batches.push_back(count);
    std::size_t num_wrong = 0;
    for (std::size_t k = 0; k < scores.size(); ++k) {
      const std::size_t i = handler.pruner().first_sample() + k;
      // A sample that fills up is trained on twice, and scored once.
      if (visits[i] == 1 && std::abs(scores[k] - expected[i]) > 1e-4F) ++num_wrong;
    }
    EXPECT_EQ(num_wrong, 0U);
  });
  EXPECT_THAT(num_batches, ::testing::Each(num_batches[0]));
  EXPECT_EQ(std::count(visits.begin(), visits.end(), 0U), 0);
}

TEST_P(Ranks, GoOnAfterASave) {
  const tamis::test::ScratchFolder scratch;
  tamis::test::run_ranks(kRanks, [&](const std::shared_ptr<Communicator>& communicator) {
    Handler handler(options(), communicator);
    train(handler, [](const auto&) {});
    handler.set_epoch(1);
    const std::vector<float> scores = handler.pruner().scores();
    handler.save(scratch / "state");
    Handler other(options(), communicator);
    other.load(scratch / "state");
    EXPECT_EQ(other.epoch(), 1U);
    const std::vector<float> loaded = other.pruner().scores();
    EXPECT_EQ(loaded, scores);
    train(other, [](const auto&) {});
    EXPECT_DOUBLE_EQ(other.progress(), 0.5);
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, Ranks,
                         ::testing::Combine(::testing::Values(Layout::replicated, Layout::sharded),
                                            ::testing::Values(Booking::by_delivery,
                                                              Booking::in_order)));

}  // namespace tamis::libtorch::ranks_test
