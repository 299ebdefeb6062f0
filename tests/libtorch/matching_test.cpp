// The batch that a loss belongs to is right for every kind of loader and loop.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/coded_data.h"

namespace tamis::libtorch {
namespace {

using test::CodedDataset;
using test::Log;
using test::LoggedHandler;
using torch::data::DataLoaderOptions;

using CodedIndexed = Indexed<test::CodedBatch>;
// Whether the loop calls update for batch `k` of `n`.
using Wanted = std::function<bool(std::size_t k, std::size_t n)>;

struct Loader {
  std::size_t workers = 0;
  bool ordered = true;
  bool drop_last = false;
  std::optional<std::size_t> max_jobs = std::nullopt;

  DataLoaderOptions options(std::size_t batch_size) const {
    auto options = DataLoaderOptions(batch_size)
                       .workers(workers)
                       .enforce_ordering(ordered)
                       .drop_last(drop_last);
    if (max_jobs) options.max_jobs(*max_jobs);
    return options;
  }
};

std::vector<Loader> ordered_loaders() {
  return {{.workers = 0},
          {.workers = 0, .drop_last = true},
          {.workers = 1},
          {.workers = 1, .ordered = false},
          {.workers = 1, .drop_last = true, .max_jobs = 1},
          {.workers = 4},
          {.workers = 4, .drop_last = true},
          {.workers = 4, .max_jobs = 3},
          {.workers = 4, .max_jobs = 100}};  // more than there are batches
}

constexpr std::size_t kSamples = 103;  // 82 in a pruned epoch
constexpr std::size_t kBatchSize = 8;
constexpr std::uint64_t kEpochs = 3;

struct Outcome {
  std::size_t num_wanted = 0;
  std::vector<std::vector<SampleIndex>>
      updated;  // the batches for which update was called, in order
};

// Runs all epochs. `update` books the loss of a batch.
Outcome run(LoggedHandler& run, const Loader& loader_options, const Wanted& wanted, bool look_ahead,
            const std::function<void(const CodedIndexed&)>& update) {
  const auto options = loader_options.options(kBatchSize);
  Handler& handler = run.handler;
  auto loader = torch::data::make_data_loader(handler.wrap(CodedDataset(kSamples)),
                                              handler.sampler(options), options);
  Outcome outcome;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::size_t n = handler.num_batches(kBatchSize, options.drop_last());
    std::size_t k = 0;
    const auto train = [&](const CodedIndexed& batch) {
      if (!wanted(k++, n)) return;
      update(batch);
      outcome.updated.push_back(batch.sample_indices);
    };
    if (look_ahead) {
      std::optional<CodedIndexed> current;
      for (auto& batch : *loader) {
        if (current) train(*current);
        current = std::move(batch);
      }
      if (current) train(*current);
    } else {
      for (auto& batch : *loader) train(batch);
    }
    EXPECT_EQ(k, n) << "num_batches was wrong in epoch " << epoch;
    EXPECT_EQ(handler.epoch(), epoch);
  }
  return outcome;
}

void expect_right(const LoggedHandler& run, const Outcome& outcome) {
  ASSERT_EQ(run.log->entries.size(), outcome.updated.size());
  for (std::size_t i = 0; i < outcome.updated.size(); ++i) {
    const Log::Entry& entry = run.log->entries[i];
    EXPECT_TRUE(Log::is_right(entry)) << "update " << i;
    const std::vector<SampleIndex> indices(entry.indices.begin(), entry.indices.end());
    EXPECT_EQ(indices, outcome.updated[i]) << "update " << i;
  }
}

struct Pattern {
  std::string name;
  Wanted wanted;
  std::size_t missed_per_epoch(std::size_t n) const {
    std::size_t missed = 0;
    for (std::size_t k = 0; k < n; ++k) missed += wanted(k, n) ? 0 : 1;
    return missed;
  }
};

std::vector<Pattern> patterns() {
  return {
      {"EveryBatch", [](std::size_t, std::size_t) { return true; }},
      {"FirstSkipped", [](std::size_t k, std::size_t) { return k != 0; }},
      {"FirstThreeSkipped", [](std::size_t k, std::size_t) { return k > 2; }},
      {"MiddleSkipped", [](std::size_t k, std::size_t n) { return k != n / 2; }},
      {"LastSkipped", [](std::size_t k, std::size_t n) { return k + 1 != n; }},
      {"LastButOneSkipped", [](std::size_t k, std::size_t n) { return k + 2 != n; }},
      {"LastTwoSkipped", [](std::size_t k, std::size_t n) { return k + 2 < n; }},
      {"FirstAndLastSkipped", [](std::size_t k, std::size_t n) { return k != 0 && k + 1 != n; }},
      {"EverySecondSkipped", [](std::size_t k, std::size_t) { return k % 2 == 1; }},
      {"OnlyTheLast", [](std::size_t k, std::size_t n) { return k + 1 == n; }}};
}

class Matching : public ::testing::TestWithParam<Pattern> {
 protected:
  // Batches of all epochs that get no update.
  static std::size_t expected_missed(bool drop_last) {
    const Pattern& pattern = GetParam();
    const std::size_t pruned = kSamples - kSamples / 5 - 1;  // floor(0.8 * 103) = 82
    const std::size_t n = drop_last ? pruned / kBatchSize : (pruned + kBatchSize - 1) / kBatchSize;
    return kEpochs * pattern.missed_per_epoch(n);
  }
};

TEST_P(Matching, PlainUpdateIsRightForEveryOrderedLoader) {
  for (const bool look_ahead : {false, true}) {
    for (const Loader& loader : ordered_loaders()) {
      SCOPED_TRACE(::testing::Message()
                   << "workers " << loader.workers << " drop_last " << loader.drop_last
                   << " look_ahead " << look_ahead << " max_jobs " << loader.max_jobs.value_or(0));
      LoggedHandler logged(kSamples, kEpochs);
      const Outcome outcome =
          run(logged, loader, GetParam().wanted, look_ahead,
              [&](const CodedIndexed& batch) { logged.handler.update(batch.losses.mean()); });
      expect_right(logged, outcome);
      EXPECT_EQ(logged.handler.missed_updates(), expected_missed(loader.drop_last));
    }
  }
}

TEST_P(Matching, UpdateWithTheBatchIsRightForEveryLoader) {
  std::vector<Loader> loaders = ordered_loaders();
  loaders.push_back({.workers = 4, .ordered = false});
  loaders.push_back({.workers = 4, .ordered = false, .drop_last = true});
  loaders.push_back({.workers = 2, .ordered = false, .max_jobs = 100});
  for (const bool look_ahead : {false, true}) {
    for (const Loader& loader : loaders) {
      SCOPED_TRACE(::testing::Message() << "workers " << loader.workers << " ordered "
                                        << loader.ordered << " look_ahead " << look_ahead);
      LoggedHandler logged(kSamples, kEpochs);
      const Outcome outcome = run(
          logged, loader, GetParam().wanted, look_ahead,
          [&](const CodedIndexed& batch) { logged.handler.update(batch.losses.mean(), batch); });
      expect_right(logged, outcome);
      EXPECT_EQ(logged.handler.missed_updates(), expected_missed(loader.drop_last));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Matching, ::testing::ValuesIn(patterns()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tamis::libtorch
