// Which batch a loss belongs to: by delivery, by ids, in order; and what is refused or dropped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/coded_data.h"

namespace tamis::libtorch::attribution_test {

using test::CodedDataset;
using test::Log;
using test::LoggedHandler;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using torch::data::DataLoaderOptions;

using CodedIndexed = Indexed<test::CodedBatch>;
// Whether the loop calls update for batch `k` of `n`.
using Wanted = std::function<bool(std::size_t k, std::size_t n)>;

constexpr std::size_t kSamples = 103;  // 82 in a pruned epoch
constexpr std::size_t kBatchSize = 8;
constexpr std::uint64_t kEpochs = 3;

std::vector<DataLoaderOptions> ordered_loaders() {
  const auto with = [](std::size_t workers) {
    return DataLoaderOptions(kBatchSize).workers(workers);
  };
  return {with(0),
          with(0).drop_last(true),
          with(1).enforce_ordering(false),
          with(1).drop_last(true).max_jobs(1),
          with(4),
          with(4).max_jobs(3).drop_last(true),
          with(4).max_jobs(100)};  // more than there are batches
}

std::string describe(const DataLoaderOptions& options) {
  return "workers " + std::to_string(options.workers()) + " ordered " +
         std::to_string(options.enforce_ordering()) + " drop_last " +
         std::to_string(options.drop_last()) + " max_jobs " +
         std::to_string(options.max_jobs().value_or(0));
}

// All epochs, holding `ahead` batches back; `update` is called for the wanted ones. Returns the
// samples of those.
template <typename Batches>
std::vector<std::vector<SampleIndex>> train(
    Handler& handler, Batches& batches, const DataLoaderOptions& options, const Wanted& wanted,
    std::size_t ahead, const std::function<void(const CodedIndexed&)>& update) {
  std::vector<std::vector<SampleIndex>> updated;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::size_t n = handler.num_batches(kBatchSize, options.drop_last());
    std::size_t k = 0;
    std::deque<CodedIndexed> held;
    const auto finish_first = [&] {
      if (wanted(k++, n)) {
        update(held.front());
        updated.push_back(held.front().sample_indices);
      }
      held.pop_front();
    };
    for (auto& batch : batches) {
      held.push_back(batch);
      if (held.size() > ahead) finish_first();
    }
    while (!held.empty()) finish_first();
    EXPECT_EQ(k, n) << "num_batches was wrong in epoch " << epoch;
    EXPECT_EQ(handler.epoch(), epoch);
  }
  handler.end_pass();
  return updated;
}

void expect_right(const LoggedHandler& run, const std::vector<std::vector<SampleIndex>>& updated) {
  ASSERT_EQ(run.log->entries.size(), updated.size());
  for (std::size_t i = 0; i < updated.size(); ++i) {
    const Log::Entry& entry = run.log->entries[i];
    EXPECT_TRUE(Log::is_right(entry)) << "update " << i;
    const std::vector<SampleIndex> indices(entry.indices.begin(), entry.indices.end());
    EXPECT_EQ(indices, updated[i]) << "update " << i;
  }
}

bool every_batch(std::size_t, std::size_t) { return true; }

std::vector<Wanted> loops_that_skip_later() {
  return {[](std::size_t k, std::size_t n) { return k != n / 2; },
          [](std::size_t k, std::size_t n) { return k + 1 != n; },
          [](std::size_t k, std::size_t) { return k % 2 == 0; },
          [](std::size_t k, std::size_t) { return k == 0; }};
}
std::vector<Wanted> loops_that_skip_the_first() {
  return {[](std::size_t k, std::size_t) { return k != 0; },
          [](std::size_t k, std::size_t) { return k % 2 == 1; },
          [](std::size_t k, std::size_t n) { return k + 1 == n; }};
}
std::vector<Wanted> loops_that_skip() {
  auto loops = loops_that_skip_later();
  for (const Wanted& wanted : loops_that_skip_the_first()) loops.push_back(wanted);
  return loops;
}

TEST(ByDelivery, ALossBelongsToTheBatchHandedOutLast) {
  auto loops = loops_that_skip_later();
  loops.emplace_back(every_batch);
  for (const Wanted& wanted : loops) {
    for (const DataLoaderOptions& options : ordered_loaders()) {
      SCOPED_TRACE(describe(options));
      LoggedHandler run(kSamples, kEpochs);
      Handler& handler = run.handler;
      handler.on_warning({});
      auto loader = handler.loader(handler.wrap(CodedDataset(kSamples)), options);
      expect_right(run, train(handler, loader, options, wanted, 0, [&](const CodedIndexed& batch) {
                     handler.update(batch.losses.mean());
                   }));
    }
  }
}

TEST(ByDelivery, ALoopThatSkipsTheFirstBatchIsRefused) {
  for (const Wanted& wanted : loops_that_skip_the_first()) {
    LoggedHandler run(kSamples, kEpochs);
    Handler& handler = run.handler;
    auto loader = handler.loader(handler.wrap(CodedDataset(kSamples)), 8);
    EXPECT_THAT(
        [&] {
          train(handler, loader, 8, wanted, 0,
                [&](const CodedIndexed& batch) { handler.update(batch.losses.mean()); });
        },
        ThrowsMessage<std::logic_error>(HasSubstr("update(loss, batch)")));
    EXPECT_TRUE(run.log->entries.empty());
  }
}

TEST(ByIds, EveryLoopAndEveryLoaderIsRight) {
  auto loaders = ordered_loaders();
  loaders.push_back(DataLoaderOptions(kBatchSize).workers(4).enforce_ordering(false));
  loaders.push_back(
      DataLoaderOptions(kBatchSize).workers(2).enforce_ordering(false).drop_last(true).max_jobs(9));
  auto loops = loops_that_skip();
  loops.emplace_back(every_batch);
  for (const Wanted& wanted : loops) {
    for (const std::size_t ahead : {0, 1, 3}) {
      for (const DataLoaderOptions& options : loaders) {
        SCOPED_TRACE(describe(options));
        LoggedHandler run(kSamples, kEpochs);
        Handler& handler = run.handler;
        handler.on_warning({});
        auto loader = torch::data::make_data_loader(handler.wrap(CodedDataset(kSamples)),
                                                    handler.sampler(options), options);
        expect_right(
            run, train(handler, *loader, options, wanted, ahead, [&](const CodedIndexed& batch) {
              handler.update(batch.losses.mean(), batch);
            }));
      }
    }
  }
}

TEST(ByIds, PartsOfABatchAreKnownByTheirIndices) {
  LoggedHandler run(kSamples, kEpochs);
  Handler& handler = run.handler;
  auto loader = handler.loader(handler.wrap(CodedDataset(kSamples)), 8);
  for (auto& batch : loader) {
    const std::span<const SampleIndex> indices(batch.sample_indices);
    const std::size_t half = (indices.size() + 1) / 2;
    const auto middle = static_cast<std::int64_t>(half);
    handler.update(batch.losses.slice(0, 0, middle).mean(), indices.first(half));
    const torch::Tensor rest = torch::tensor(batch.sample_indices).slice(0, middle);
    if (rest.numel() > 0) handler.update(batch.losses.slice(0, middle).mean(), rest);
  }
  for (const auto& entry : run.log->entries) EXPECT_TRUE(Log::is_right(entry));
  EXPECT_EQ(handler.pruner().position(), handler.pruner().plan()->size());
  handler.end_pass();
  EXPECT_EQ(handler.last_pass().num_missed, 0U);
}

TEST(InOrder, TheKthUpdateBelongsToTheKthBatch) {
  for (const std::size_t ahead : {0, 1}) {
    for (const DataLoaderOptions& options : ordered_loaders()) {
      SCOPED_TRACE(describe(options));
      LoggedHandler run(kSamples, kEpochs);
      Handler& handler = run.handler;
      std::vector<std::string> warnings;
      handler.on_warning([&](const std::string& text) { warnings.push_back(text); });
      auto loader = torch::data::make_data_loader(handler.wrap(CodedDataset(kSamples)),
                                                  handler.sampler(options), options);
      expect_right(run,
                   train(handler, *loader, options, every_batch, ahead,
                         [&](const CodedIndexed& batch) { handler.update(batch.losses.mean()); }));
      EXPECT_THAT(warnings, ::testing::IsEmpty());
    }
  }
}

TEST(InOrder, APassWithASkippedUpdateIsDroppedWithAWarning) {
  for (const Wanted& wanted : loops_that_skip()) {
    for (const DataLoaderOptions& options : ordered_loaders()) {
      SCOPED_TRACE(describe(options));
      LoggedHandler run(kSamples, kEpochs);
      Handler& handler = run.handler;
      std::vector<std::string> warnings;
      handler.on_warning([&](const std::string& text) { warnings.push_back(text); });
      auto loader = torch::data::make_data_loader(handler.wrap(CodedDataset(kSamples)),
                                                  handler.sampler(options), options);
      train(handler, *loader, options, wanted, 0,
            [&](const CodedIndexed& batch) { handler.update(batch.losses.mean()); });
      for (const auto& entry : run.log->entries) EXPECT_TRUE(Log::is_right(entry));
      EXPECT_EQ(warnings.size(), kEpochs);
    }
  }
}

class Loop : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 64;
  auto make_torch_loader(const DataLoaderOptions& options, std::set<std::size_t> broken = {}) {
    return torch::data::make_data_loader(handler_.wrap(CodedDataset(kSize, std::move(broken))),
                                         handler_.sampler(options), options);
  }
  auto make_loader(const DataLoaderOptions& options, std::set<std::size_t> broken = {}) {
    return handler_.loader(handler_.wrap(CodedDataset(kSize, std::move(broken))), options);
  }
  void expect_all_right(std::size_t count) const {
    EXPECT_EQ(logged_.log->entries.size(), count);
    for (const auto& entry : logged_.log->entries) EXPECT_TRUE(Log::is_right(entry));
  }
  template <typename Call>
  void expect_refused(Call call, const char* message) {
    EXPECT_THAT(call, ThrowsMessage<std::logic_error>(HasSubstr(message)));
  }
  LoggedHandler logged_{kSize, 4, {"none"}};
  Handler& handler_ = logged_.handler;
};

TEST_F(Loop, OurLoaderRefusesALoopThatFetchesAhead) {
  auto loader = make_loader(DataLoaderOptions(8).workers(2));
  auto batch = loader.begin();
  const CodedIndexed first = *batch;
  ++batch;
  expect_refused([&] { handler_.update(first.losses.mean()); }, "update(loss, batch)");
  handler_.update(first.losses.mean(), first);  // by ids it is right
  expect_all_right(1);
}

TEST_F(Loop, AnUnorderedLoaderNeedsTheBatch) {
  const auto unordered = DataLoaderOptions(8).workers(2).enforce_ordering(false);
  auto loader = make_torch_loader(unordered);
  auto batch = loader->begin();
  expect_refused([&] { handler_.update(batch->losses.mean()); }, "update(loss, batch)");
  handler_.update(batch->losses.mean(), *batch);
  expect_all_right(1);
  EXPECT_THAT([&] { make_loader(unordered); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("enforce_ordering")));
}

TEST_F(Loop, AnUpdateNeedsAPass) {
  expect_refused([&] { handler_.update(torch::ones({})); }, "no batch has been delivered");
  expect_refused([&] { handler_.update(torch::ones({}), torch::tensor({1, 2})); }, "set_epoch");
}

TEST_F(Loop, TheBatchSizeOfTheLoaderMustBeThatOfTheSampler) {
  auto loader = torch::data::make_data_loader(handler_.wrap(CodedDataset(kSize)),
                                              handler_.sampler(8), DataLoaderOptions(16));
  EXPECT_THAT([&] { loader->begin() == loader->end(); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("batch_size")));
}

TEST_F(Loop, JobsWithoutWorkersAreRefusedBecauseTorchLosesThem) {
  const auto options = DataLoaderOptions(8).max_jobs(2);
  EXPECT_THAT([&] { handler_.sampler(options); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("max_jobs")));
}

TEST_F(Loop, ALoopThatWasLeftIsFollowedByTheNextEpoch) {
  std::uint64_t epoch = 0;
  for (const std::size_t workers : {0, 3}) {
    auto loader = make_loader(DataLoaderOptions(8).workers(workers));
    std::size_t k = 0;
    for (auto& batch : loader) {
      if (k++ == 3) break;
      handler_.update(batch.losses.mean());
    }
    EXPECT_EQ(handler_.epoch(), epoch++);
    for (auto& batch : loader) {
      handler_.update(batch.losses.mean());
      ++k;
    }
    EXPECT_EQ(k, 12U);  // 4 and 8
    EXPECT_EQ(handler_.epoch(), epoch++);
  }
  expect_all_right(22);
}

TEST_F(Loop, TheLoaderThatBeganFirstIsRefusedAfterTheSecond) {
  auto first = make_loader(8);
  auto second = make_loader(8);
  auto batch = first.begin();
  auto other = second.begin();
  expect_refused([&] { ++batch; }, "pass has ended");
  handler_.update(other->losses.mean());
  expect_all_right(1);

  auto third = make_torch_loader(8);
  auto fourth = make_torch_loader(8);
  auto old = third->begin();
  EXPECT_EQ(old->sample_indices.size(), 8U);
  fourth->begin();
  expect_refused([&] { ++old; }, "pass has ended");
}

TEST_F(Loop, ADataSetThatFailsEndsThePassOfOurLoader) {
  const EpochPlan preview = handler_.pruner().preview(0);
  const auto third = static_cast<std::size_t>(preview.sample(16));
  for (const std::size_t workers : {0, 2}) {
    auto loader = make_loader(DataLoaderOptions(8).workers(workers), {third});
    handler_.set_epoch(0);
    auto batch = loader.begin();
    handler_.update(batch->losses.mean());
    ++batch;
    handler_.update(batch->losses.mean());
    EXPECT_ANY_THROW(++batch);
    expect_refused([&] { handler_.update(torch::ones({})); }, "no batch has been delivered");
    expect_refused([&] { ++batch; }, "pass has ended");
    handler_.set_epoch(1);
  }
  expect_all_right(4);
}

TEST_F(Loop, InOrderABatchThatFailedDropsThePass) {
  const EpochPlan preview = handler_.pruner().preview(0);
  const auto third = static_cast<std::size_t>(preview.sample(16));
  std::vector<std::string> warnings;
  handler_.on_warning([&](const std::string& text) { warnings.push_back(text); });
  for (const std::size_t workers : {0, 2}) {
    handler_.set_epoch(0);
    auto options = DataLoaderOptions(8).workers(workers);
    if (workers > 0) options.max_jobs(4);
    auto loader = make_torch_loader(options, {third});
    auto batch = loader->begin();
    while (batch != loader->end()) {
      handler_.update(batch->losses.mean());
      try {
        ++batch;
      } catch (const std::exception&) {
        ++batch;
      }
    }
    handler_.end_pass();
    EXPECT_TRUE(handler_.last_pass().dropped);
    handler_.set_epoch(1);
  }
  EXPECT_EQ(warnings.size(), 2U);
  expect_all_right(0);
}

TEST_F(Loop, BatchesWithoutAnUpdateAreReported) {
  std::vector<std::string> warnings;
  handler_.on_warning([&](const std::string& text) { warnings.push_back(text); });
  auto loader = make_loader(DataLoaderOptions(8).workers(2));
  int k = 0;
  for (auto& batch : loader) {
    if (k++ != 2) handler_.update(batch.losses.mean());
  }
  handler_.end_pass();
  EXPECT_EQ(handler_.last_pass().num_missed, 1U);
  EXPECT_THAT(warnings, ::testing::ElementsAre(HasSubstr("1")));
  expect_all_right(7);
}

}  // namespace tamis::libtorch::attribution_test
