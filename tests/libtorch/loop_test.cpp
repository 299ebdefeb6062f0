// Loops that are written out: parts of batches, failures, and loops that update(loss) refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "support/coded_data.h"

namespace tamis::libtorch {
namespace {

using test::CodedDataset;
using test::Log;
using test::LoggedHandler;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using torch::data::DataLoaderOptions;

using CodedIndexed = Indexed<test::CodedBatch>;

class Loop : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 64;
  auto make_loader(const DataLoaderOptions& options, std::set<std::size_t> broken = {}) {
    return torch::data::make_data_loader(
        logged_.handler.wrap(CodedDataset(kSize, std::move(broken))),
        logged_.handler.sampler(options), options);
  }
  void expect_all_right(std::size_t count) const {
    EXPECT_EQ(logged_.log->entries.size(), count);
    for (const auto& entry : logged_.log->entries) EXPECT_TRUE(Log::is_right(entry));
  }
  // Called with what update threw.
  template <typename Call>
  void expect_refused(Call call, const char* message) {
    EXPECT_THAT(call, ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  }
  LoggedHandler logged_{kSize, 4, {"none"}};
  Handler& handler_ = logged_.handler;
};

TEST_F(Loop, GradientAccumulationBooksEveryMicroBatch) {
  auto loader = make_loader(DataLoaderOptions(4).workers(2));
  torch::Tensor accumulated;
  int steps = 0;
  for (auto& batch : *loader) {
    const torch::Tensor loss = handler_.update(batch.losses.mean()) / 4;
    accumulated = accumulated.defined() ? accumulated + loss : loss;
    if (++steps % 4 == 0) accumulated = torch::Tensor();
  }
  expect_all_right(16);
  EXPECT_EQ(handler_.missed_updates(), 0);
}

TEST_F(Loop, PartsOfABatchAreBookedByTheirIndices) {
  auto loader = make_loader(DataLoaderOptions(8).workers(2));
  for (auto& batch : *loader) {
    const std::span<const SampleIndex> indices(batch.sample_indices);
    handler_.update(batch.losses.slice(0, 0, 3).mean(), indices.first(3));
    const torch::Tensor rest = torch::tensor(batch.sample_indices).slice(0, 3);
    handler_.update(batch.losses.slice(0, 3).mean(), rest);
  }
  expect_all_right(16);
  EXPECT_EQ(handler_.missed_updates(), 0);
  EXPECT_EQ(handler_.pruner().position(), kSize);
}

TEST_F(Loop, AnUnorderedLoaderNeedsTheBatch) {
  auto loader = make_loader(DataLoaderOptions(8).workers(2).enforce_ordering(false));
  auto batch = loader->begin();
  expect_refused([&] { handler_.update(batch->losses.mean()); }, "does not enforce ordering");
  handler_.update(batch->losses.mean(), *batch);
  expect_all_right(1);
}

TEST_F(Loop, ASecondPlainUpdateForABatchIsRefused) {
  for (const std::size_t workers : {0, 2}) {
    auto loader = make_loader(DataLoaderOptions(8).workers(workers));
    auto batch = loader->begin();
    handler_.update(batch->losses.mean());
    expect_refused([&] { handler_.update(batch->losses.mean()); }, "again before the next batch");
    handler_.update(batch->losses.mean(), *batch);  // naming it is fine
    handler_.set_epoch(handler_.epoch() + 1);
  }
  expect_all_right(4);
}

TEST_F(Loop, APlainUpdateAfterItsBatchWasDestroyedIsRefused) {
  auto loader = make_loader(DataLoaderOptions(8).workers(2));
  auto iterator = loader->begin();
  const torch::Tensor loss = CodedIndexed(std::move(*iterator)).losses.mean();
  expect_refused([&] { handler_.update(loss); }, "was destroyed");
  EXPECT_TRUE(logged_.log->entries.empty());
}

// A loop that keeps only tensors of the batch it fetched ahead looks, at first, like one that
// skipped its first batch. It is found out at the end of the pass, before a plan is made from its
// scores.
TEST_F(Loop, LookAheadThatDropsItsBatchesIsRefusedBeforeTheNextPlan) {
  auto loader = make_loader(DataLoaderOptions(8).workers(2));
  torch::Tensor losses;
  for (auto& batch : *loader) {
    if (losses.defined()) handler_.update(losses.mean());
    losses = batch.losses;
  }
  expect_refused([&] { handler_.update(losses.mean()); }, "again before the next batch");
}

TEST_F(Loop, APlainUpdateNeedsTheLoadersOptionsAndAWrappedDataSet) {
  expect_refused([&] { handler_.update(torch::ones({})); }, "has not started a pass");
  auto without = torch::data::make_data_loader(handler_.wrap(CodedDataset(kSize)),
                                               handler_.sampler(), DataLoaderOptions(8));
  auto first = without->begin();
  expect_refused([&] { handler_.update(first->losses.mean()); }, "sampler(options)");
  handler_.update(first->losses.mean(), *first);

  auto bare =
      torch::data::make_data_loader(CodedDataset(kSize), handler_.sampler(8), DataLoaderOptions(8));
  auto second = bare->begin();
  expect_refused([&] { handler_.update(second->losses.mean()); }, "is the data set wrapped?");
  expect_all_right(1);
}

TEST_F(Loop, ALoaderWithOtherOptionsThanTheSamplerIsRefused) {
  const auto run_all = [&](const DataLoaderOptions& given, const DataLoaderOptions& used) {
    auto loader = torch::data::make_data_loader(handler_.wrap(CodedDataset(kSize)),
                                                handler_.sampler(given), used);
    for (auto& batch : *loader) handler_.update(batch.losses.mean());
  };
  expect_refused([&] { run_all(8, 16); }, "batch_size");
  expect_refused([&] { run_all(DataLoaderOptions(8).workers(1), 8); }, "workers");
  EXPECT_THROW(run_all(8, DataLoaderOptions(8).workers(1)), torch::data::WorkerException);
  EXPECT_THROW(
      run_all(DataLoaderOptions(8).workers(2), DataLoaderOptions(8).workers(2).max_jobs(6)),
      std::invalid_argument);
  EXPECT_THROW(
      run_all(DataLoaderOptions(8).workers(2).max_jobs(6), DataLoaderOptions(8).workers(2)),
      std::invalid_argument);
  for (const auto& entry : logged_.log->entries) EXPECT_TRUE(Log::is_right(entry));
}

// A batch whose data set threw is not handed out; the loop may go on with the next one.
TEST_F(Loop, BatchesThatFailedDoNotShiftTheOthers) {
  const EpochPlan preview = handler_.pruner().preview(0);
  const std::vector<std::size_t> plan(preview.order().begin(), preview.order().end());
  for (const std::size_t workers : {0, 1, 3}) {
    LoggedHandler logged(kSize, 4, {"none"});
    auto options = DataLoaderOptions(8).workers(workers);
    // The loader asks for one batch less ahead after each failure, and ends when it asks for none.
    if (workers > 0) options.max_jobs(6);
    auto loader = torch::data::make_data_loader(
        logged.handler.wrap(CodedDataset(kSize, {plan[0], plan[24], plan[56]})),
        logged.handler.sampler(options), options);
    auto iterator = loader->begin();
    std::size_t failures = 0;
    bool more = true;
    const auto advance = [&](auto step) {
      try {
        step();
        return true;
      } catch (const std::exception&) {  // the data set's own, or torch's around it
        ++failures;
        return false;
      }
    };
    while (!advance([&] { more = iterator != loader->end(); })) {
    }
    while (more) {
      logged.handler.update(iterator->losses.mean());
      while (!advance([&] { ++iterator; })) {
      }
      more = iterator != loader->end();
    }
    EXPECT_EQ(failures, 3) << workers;
    EXPECT_EQ(logged.log->entries.size(), 5) << workers;
    for (const auto& entry : logged.log->entries) EXPECT_TRUE(Log::is_right(entry)) << workers;
    EXPECT_EQ(logged.handler.missed_updates(), 0);
    EXPECT_EQ(logged.handler.pruner().position(), kSize);
  }
}

TEST_F(Loop, ABatchOfAnEndedPassIsRefused) {
  auto loader = make_loader(8);
  const CodedIndexed old = *loader->begin();
  loader->begin();
  expect_refused([&] { handler_.update(old.losses.mean(), old); }, "a pass that has ended");
  EXPECT_TRUE(logged_.log->entries.empty());
}

TEST_F(Loop, MissedUpdatesAreReportedWithTheirEpoch) {
  std::vector<std::pair<std::size_t, std::uint64_t>> reports;
  handler_.on_missed_updates(
      [&](std::size_t count, std::uint64_t epoch) { reports.emplace_back(count, epoch); });
  auto loader = make_loader(DataLoaderOptions(8).workers(2));
  for (int epoch = 0; epoch < 2; ++epoch) {
    int k = 0;
    for (auto& batch : *loader) {
      if (k++ != 2 + 5 * epoch) handler_.update(batch.losses.mean());
    }
  }
  EXPECT_EQ(handler_.missed_updates(), 2);
  EXPECT_THAT(reports, ::testing::ElementsAre(std::pair(1U, 0U), std::pair(1U, 1U)));
  expect_all_right(14);
}

TEST_F(Loop, ADataSetUsedByAnotherLoaderTooDoesNotDisturb) {
  auto loader = make_loader(8);
  for (auto& batch : *loader) {
    auto other = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        handler_.wrap(CodedDataset(kSize)), 8);
    for (auto& seen : *other) EXPECT_EQ(seen.ticket, nullptr);
    handler_.update(batch.losses.mean());
  }
  expect_all_right(8);
}

}  // namespace
}  // namespace tamis::libtorch
