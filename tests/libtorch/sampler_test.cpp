// Passes and epochs, saving in the middle of one, and LibTorch's sampler interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <sstream>
#include <tuple>
#include <vector>

#include "support/coded_data.h"
#include "support/scratch_folder.h"

namespace tamis::libtorch::sampler_test {

using test::CodedDataset;
using test::Log;
using test::LoggedHandler;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using torch::data::DataLoaderOptions;

PrunerOptions options_for(std::size_t num_samples, std::uint64_t num_epochs) {
  return {.num_samples = num_samples,
          .num_epochs = num_epochs,
          .policy = {"infobatch"},
          .score = Spec{"batch-loss"},
          .seed = 3};
}

std::vector<std::size_t> drain(Sampler& sampler, std::size_t batch_size) {
  std::vector<std::size_t> all;
  while (auto batch = sampler.next(batch_size)) all.insert(all.end(), batch->begin(), batch->end());
  return all;
}

TEST(Sampler, FitsLibTorchsInterface) {
  Handler handler(options_for(10, 2));
  Sampler sampler = handler.sampler(4);
  torch::data::samplers::Sampler<>& interface = sampler;
  interface.reset({});
  EXPECT_EQ(interface.next(4)->size(), 4);
  EXPECT_EQ(interface.next(4)->size(), 4);
  EXPECT_EQ(interface.next(4)->size(), 2);
  EXPECT_FALSE(interface.next(4).has_value());
  EXPECT_FALSE(interface.next(4).has_value());
}

TEST(Sampler, HandsOutThePlanOfTheEpoch) {
  Handler handler(options_for(100, 2));
  Sampler sampler = handler.sampler(7);
  const std::vector<std::size_t> all = drain(sampler, 7);
  const auto order = handler.pruner().plan()->order();
  EXPECT_EQ(all, std::vector<std::size_t>(order.begin(), order.end()));
}

TEST(Sampler, HandsOutHomogeneousBatchesOfTheirSizeOnly) {
  PrunerOptions options = options_for(203, 3);
  options.homogeneous_batch_size = 8;
  Handler handler(options);
  const DataLoaderOptions loader_options(8);
  auto loader = torch::data::make_data_loader(handler.wrap(CodedDataset(203)),
                                              handler.sampler(loader_options), loader_options);
  std::size_t num_rescaled = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *loader) {
      const EpochPlan& plan = *handler.pruner().plan();
      const float first = plan.weight_of(batch.sample_indices[0]);
      for (const SampleIndex i : batch.sample_indices) EXPECT_EQ(plan.weight_of(i), first);
      num_rescaled += first != 1.0F ? 1 : 0;
      const torch::Tensor loss = batch.losses.mean();
      EXPECT_DOUBLE_EQ(handler.update(loss, batch).item<double>(),
                       loss.item<double>() * static_cast<double>(first));
    }
  }
  EXPECT_GT(num_rescaled, 3U);
  EXPECT_THAT([&] { handler.sampler(16); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("a divisor of homogeneous_batch_size (8), got 16")));
}

TEST(Sampler, RefusesAnotherSizeOfTheDataSet) {
  Handler handler(options_for(10, 2));
  Sampler sampler = handler.sampler(4);
  EXPECT_NO_THROW(sampler.reset(10));
  EXPECT_THAT(
      [&] { sampler.reset(11); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("new_size must be num_samples (10), got 11")));
  EXPECT_THAT([&] { handler.wrap(CodedDataset(11)); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("size of the data set")));
  EXPECT_THROW(sampler.next(5), std::invalid_argument);
  EXPECT_THROW(handler.sampler(0), std::invalid_argument);
}

TEST(Sampler, OnlyTheOneThatWasResetLastIsAnswered) {
  Handler handler(options_for(10, 2));
  Sampler first = handler.sampler(2);
  Sampler second = handler.sampler(2);
  first.reset();
  second.reset();
  EXPECT_NO_THROW(second.next(2));
  EXPECT_THAT([&] { first.next(2); },
              ThrowsMessage<std::logic_error>(HasSubstr("the pass has ended")));
}

class Epochs : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 40;
  // One pass; trains on the first `limit` batches.
  std::size_t pass(std::size_t limit = 1000) {
    std::size_t count = 0;
    for (auto& batch : loader_) {
      if (count == limit) break;
      logged_.handler.update(batch.losses.mean());
      ++count;
    }
    return count;
  }
  LoggedHandler logged_{kSize, 4, {"none"}};
  Handler& handler_ = logged_.handler;
  Loader<IndexedDataset<CodedDataset>> loader_ =
      handler_.loader(handler_.wrap(CodedDataset(kSize)), 8);
};

TEST_F(Epochs, AdvanceAfterACompletePassAndEndAfterTheLast) {
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    EXPECT_DOUBLE_EQ(handler_.progress(), 0.25 * static_cast<double>(epoch));
    EXPECT_EQ(handler_.num_batches(8), 5);
    EXPECT_EQ(pass(), 5);
    EXPECT_EQ(handler_.epoch(), epoch);
  }
  EXPECT_DOUBLE_EQ(handler_.progress(), 1.0);
  EXPECT_EQ(handler_.num_batches(8), 0);
  EXPECT_THROW(loader_.begin(), std::out_of_range);
}

TEST_F(Epochs, DoNotAdvanceBeforeABatchWasTrainedOn) {
  const std::vector<SampleIndex> first = loader_.begin()->sample_indices;
  EXPECT_EQ(loader_.begin()->sample_indices, first);
  EXPECT_EQ(handler_.epoch(), 0);
  EXPECT_EQ(handler_.pruner().num_observations(), 0);
}

TEST_F(Epochs, ALoopThatIsLeftEarlyUsesUpItsEpoch) {
  EXPECT_EQ(pass(2), 2);
  EXPECT_EQ(handler_.num_batches(8), 3);  // the loop may still go on
  EXPECT_EQ(pass(), 5);
  EXPECT_EQ(handler_.epoch(), 1);
  EXPECT_EQ(pass(1), 1);
  handler_.end_pass();
  EXPECT_DOUBLE_EQ(handler_.progress(), 0.75);
  EXPECT_EQ(handler_.num_batches(8), 5);
  EXPECT_EQ(pass(), 5);
  EXPECT_EQ(handler_.epoch(), 3);
  for (const auto& entry : logged_.log->entries) EXPECT_TRUE(Log::is_right(entry));
}

TEST_F(Epochs, SetEpochChoosesTheNextPass) {
  handler_.set_epoch(2);
  EXPECT_EQ(pass(2), 2);
  handler_.set_epoch(2);  // once more from its beginning
  EXPECT_EQ(pass(), 5);
  EXPECT_EQ(handler_.epoch(), 2);
  handler_.set_epoch(0);
  EXPECT_EQ(pass(), 5);
  EXPECT_EQ(handler_.epoch(), 0);
  EXPECT_THROW(handler_.set_epoch(4), std::out_of_range);
}

TEST_F(Epochs, SetEpochKeepsThePositionOfALoadedStateInThatEpoch) {
  const tamis::test::ScratchFolder folder;
  for (const std::size_t num_trained : {2, 5}) {
    handler_.set_epoch(1);
    EXPECT_EQ(pass(num_trained), num_trained);
    handler_.save(folder / "state");
    EXPECT_EQ(pass(), 5);  // of another epoch
    handler_.load(folder / "state");
    handler_.set_epoch(1);
    EXPECT_EQ(handler_.num_batches(8), 5 - num_trained);
    EXPECT_EQ(pass(), 5 - num_trained);
    EXPECT_EQ(handler_.epoch(), 1);
    EXPECT_EQ(pass(), 5);
    EXPECT_EQ(handler_.epoch(), 2);
  }
  handler_.load(folder / "state");
  handler_.set_epoch(3);
  EXPECT_EQ(pass(), 5);
  EXPECT_EQ(handler_.epoch(), 3);
}

TEST(Handler, ProgressGrowsWithEveryUpdateAndReachesOneWithDropLast) {
  LoggedHandler logged(50, 2, {"none"});
  const auto options = DataLoaderOptions(8).workers(2).drop_last(true);
  auto loader = torch::data::make_data_loader(logged.handler.wrap(CodedDataset(50)),
                                              logged.handler.sampler(options), options);
  double last = 0.0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(logged.handler.num_batches(8, true), 6);
    for (auto& batch : *loader) {
      logged.handler.update(batch.losses.mean());
      EXPECT_GT(logged.handler.progress(), last);
      last = logged.handler.progress();
    }
  }
  EXPECT_DOUBLE_EQ(last, 1.0);
  EXPECT_EQ(logged.handler.last_pass().num_missed, 0);
}

TEST(Handler, ALoopWithoutLibTorchsLoaderUpdatesByIndices) {
  Handler handler(options_for(30, 2));
  for (int epoch = 0; epoch < 2; ++epoch) {
    Sampler sampler = handler.sampler(7);
    sampler.reset();
    while (auto batch = sampler.next(7)) {
      const std::vector<SampleIndex> indices(batch->begin(), batch->end());
      handler.update(torch::tensor(1.0 + static_cast<double>(indices[0])), indices);
    }
    EXPECT_EQ(handler.epoch(), epoch);
    EXPECT_EQ(handler.pruner().position(), handler.pruner().plan()->size());
  }
  EXPECT_EQ(handler.last_pass().num_missed, 0);
}

// One training run of a model of one number; returns everything it saw.
class Resume : public ::testing::TestWithParam<std::tuple<Booking, std::size_t>> {
 protected:
  static constexpr std::size_t kSize = 200;
  static constexpr std::uint64_t kEpochs = 4;
  struct Trace {
    std::vector<std::vector<SampleIndex>> batches;
    std::vector<double> losses;
  };
  // Trains until `stop` updates were made in all, or to the end.
  static void train(Handler& handler, std::size_t stop, Trace& trace) {
    const auto [booking, workers] = GetParam();
    const auto options = DataLoaderOptions(16).workers(workers);
    auto dataset = handler.wrap(CodedDataset(kSize));
    if (booking == Booking::by_delivery) {
      auto loader = handler.loader(std::move(dataset), options);
      train(handler, loader, stop, trace);
    } else {
      auto loader =
          torch::data::make_data_loader(std::move(dataset), handler.sampler(options), options);
      train(handler, *loader, stop, trace);
    }
  }
  template <typename Batches>
  static void train(Handler& handler, Batches& batches, std::size_t stop, Trace& trace) {
    while (handler.progress() < 1.0) {
      for (auto& batch : batches) {
        if (trace.batches.size() == stop) return;
        const torch::Tensor loss = handler.update(batch.losses.mean() / 100);
        trace.batches.push_back(batch.sample_indices);
        trace.losses.push_back(loss.template item<double>());
      }
    }
  }
};

TEST_P(Resume, GoesOnExactlyAfterASaveAtAnyBatch) {
  Trace whole;
  Handler reference(options_for(kSize, kEpochs));
  train(reference, 100'000, whole);
  ASSERT_GT(whole.batches.size(), 30);
  const tamis::test::ScratchFolder folder;
  for (std::size_t stop = 0; stop <= whole.batches.size(); stop += 3) {
    Trace trace;
    {
      Handler handler(options_for(kSize, kEpochs));
      train(handler, stop, trace);
      handler.save(folder / "state");
    }
    Handler handler(options_for(kSize, kEpochs));
    handler.load(folder / "state");
    train(handler, 100'000, trace);
    EXPECT_EQ(trace.batches, whole.batches) << "stopped after " << stop;
    EXPECT_EQ(trace.losses, whole.losses) << "stopped after " << stop;
    EXPECT_EQ(handler.pruner().scores(), reference.pruner().scores());
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Resume,
                         ::testing::Combine(::testing::Values(Booking::by_delivery,
                                                              Booking::in_order),
                                            ::testing::Values(0, 1, 4)));

TEST(Sampler, SavesAndLoadsThroughLibTorchsArchives) {
  const auto train = [](Handler& handler, std::size_t batches) {
    Sampler sampler = handler.sampler(10);
    sampler.reset();
    for (std::size_t k = 0; k < batches; ++k) {
      const auto batch = sampler.next(10);
      if (!batch) break;
      const std::vector<SampleIndex> indices(batch->begin(), batch->end());
      handler.update(torch::tensor(0.1 * static_cast<double>(k)), indices);
    }
  };
  Handler first(options_for(100, 3));
  train(first, 10);
  train(first, 4);
  torch::serialize::OutputArchive out;
  first.sampler(10).save(out);
  std::stringstream stream;
  out.save_to(stream);

  Handler second(options_for(100, 3));
  torch::serialize::InputArchive in;
  in.load_from(stream);
  Sampler sampler = second.sampler(10);
  sampler.load(in);
  EXPECT_EQ(second.epoch(), 1);
  EXPECT_EQ(second.pruner().position(), 40);
  EXPECT_EQ(drain(sampler, 10).size(), second.pruner().plan()->size() - 40);
  EXPECT_EQ(second.pruner().scores(), first.pruner().scores());
}

TEST(Sampler, RefusesAnArchiveOfAnotherRunAndKeepsItsState) {
  Handler other(options_for(99, 3));
  torch::serialize::OutputArchive out;
  other.sampler(10).save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  Handler handler(options_for(100, 3));
  Sampler sampler = handler.sampler(10);
  sampler.reset();
  EXPECT_THROW(sampler.load(in), std::runtime_error);
  EXPECT_EQ(drain(sampler, 10).size(), 100);

  torch::serialize::OutputArchive empty;
  std::stringstream empty_stream;
  empty.save_to(empty_stream);
  torch::serialize::InputArchive nothing;
  nothing.load_from(empty_stream);
  EXPECT_THAT([&] { sampler.load(nothing); },
              ThrowsMessage<std::runtime_error>(HasSubstr("no tamis state")));
}

}  // namespace tamis::libtorch::sampler_test
