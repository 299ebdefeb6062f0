#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "support/loss_book.h"
#include "tamis/loss_book.h"

namespace tamis {
namespace {

using test::ids_of;
using test::loss_at;
using test::make_pruner;
using testing::HasSubstr;

// A training loop made up at random: how far its loader fetches ahead, which batches it skips or
// uses twice, where it is left, and which updates come with ids.
struct RandomLoop {
  Booking booking;
  std::size_t batch_size;
  std::size_t lookahead;  // batches fetched before the one that is worked on
  bool fetches_windows;   // fetches `lookahead + 1` batches at a time
  double skips;
  double repeats;
  double uses_ids;
  double leaves;
};

RandomLoop make_loop(std::mt19937_64& random) {
  const auto chance = [&](double p) { return std::bernoulli_distribution(p)(random); };
  const auto any = [&](double p) { return chance(0.5) ? 0.0 : p; };
  return {.booking = chance(0.5) ? Booking::by_delivery : Booking::in_order,
          .batch_size = 1 + random() % 9,
          .lookahead = chance(0.5) ? 0 : random() % 4,
          .fetches_windows = chance(0.2),
          .skips = any(0.2),
          .repeats = any(0.2),
          .uses_ids = chance(0.7) ? 0.0 : (chance(0.5) ? 1.0 : 0.5),
          .leaves = any(0.05)};
}

// Runs one pass; a refused update must say the cure.
void walk(const RandomLoop& loop, Pruner& pruner, LossBook& book, std::mt19937_64& random) {
  const auto chance = [&](double p) { return std::bernoulli_distribution(p)(random); };
  const std::size_t size = pruner.plan()->size();
  std::size_t end = pruner.position();
  std::deque<PlannedBatch> fetched;
  const auto fetch = [&] {
    if (end == size) {
      book.finish_delivery();
      return;
    }
    const std::size_t count = std::min(loop.batch_size, size - end);
    book.deliver(count);
    fetched.push_back({end, count});
    end += count;
  };
  book.begin_pass(loop.booking);
  for (std::size_t k = 0; k < loop.lookahead && !loop.fetches_windows; ++k) fetch();
  for (;;) {
    if (loop.fetches_windows) {
      if (fetched.empty()) {
        for (std::size_t k = 0; k <= loop.lookahead; ++k) fetch();
      }
    } else {
      fetch();
    }
    if (fetched.empty()) return;
    const PlannedBatch batch = fetched.front();
    fetched.pop_front();
    if (chance(loop.leaves)) return;
    if (chance(loop.skips)) continue;
    // Of the batches that were fetched ahead when the loader ran dry, one skipped and another used
    // twice look like two updates in turn: the one thing that counting cannot tell.
    const bool is_tail = end == size && loop.lookahead > 0;
    const int num_updates = chance(loop.repeats) && !is_tail ? 2 : 1;
    for (int k = 0; k < num_updates; ++k) {
      try {
        if (chance(loop.uses_ids)) {
          book.update(ids_of(pruner, batch), loss_at(batch.begin));
        } else {
          book.update(loss_at(batch.begin));
        }
      } catch (const std::logic_error& error) {
        ASSERT_THAT(error.what(), HasSubstr("update(loss, batch)"));
      }
    }
  }
}

TEST(LossBook, InThousandsOfRandomLoopsNoLossEndsUpOnAnotherBatch) {
  std::size_t num_scored = 0;
  std::size_t num_dropped = 0;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    std::mt19937_64 random(seed);
    Pruner pruner = make_pruner(30 + random() % 40);
    LossBook book(pruner);
    const RandomLoop loop = make_loop(random);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      Pruner fresh = make_pruner(pruner.num_samples());
      pruner = std::move(fresh);  // scores of this pass only
      pruner.start_epoch(epoch);
      walk(loop, pruner, book, random);
      const PassSummary summary = book.end_pass();
      num_dropped += summary.dropped ? 1 : 0;
      const bool says_so = to_warning(summary).find("none of them") != std::string::npos;
      ASSERT_EQ(summary.dropped, says_so) << "seed " << seed;
      const std::vector<float> scores = pruner.scores();
      for (std::size_t j = 0; j < pruner.plan()->size(); ++j) {
        const float score = scores[pruner.plan()->order()[j]];
        if (std::isnan(score)) continue;
        ++num_scored;
        ASSERT_EQ(score, static_cast<float>(loss_at(j / loop.batch_size * loop.batch_size)))
            << "seed " << seed << ", place " << j;
      }
    }
  }
  EXPECT_GT(num_scored, 100'000U);
  EXPECT_GT(num_dropped, 500U);
}

}  // namespace
}  // namespace tamis
