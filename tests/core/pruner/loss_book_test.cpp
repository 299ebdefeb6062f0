#include "tamis/loss_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace tamis {
namespace {

using testing::HasSubstr;

constexpr std::size_t kNumSamples = 40;

Pruner make_pruner(std::size_t num_samples = kNumSamples, std::string score = "last-batch-loss") {
  return Pruner({.num_samples = num_samples,
                 .num_epochs = 4,
                 .policy = {.name = "none"},
                 .score = Spec{.name = std::move(score)}});
}

std::vector<SampleIndex> ids_of(const Pruner& pruner, const PlannedBatch& batch) {
  std::vector<SampleIndex> ids(batch.count);
  pruner.plan()->copy_to(batch.begin, ids);
  return ids;
}

// The loss that belongs to the batch that starts at this place of the plan.
double loss_at(std::size_t begin) { return 1.0 + static_cast<double>(begin); }

TEST(LossBook, ByDeliveryALossBelongsToTheBatchDeliveredLast) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::by_delivery);
  book.deliver(8);
  EXPECT_EQ(book.update(loss_at(0)), (PlannedBatch{0, 8}));
  book.deliver(8);  // this one is skipped
  book.deliver(8);
  EXPECT_EQ(book.update(loss_at(16)), (PlannedBatch{16, 8}));
  EXPECT_EQ(pruner.position(), 24U);
  EXPECT_EQ(pruner.num_observations(), 2U);
  const PassSummary summary = book.end_pass();
  EXPECT_EQ(summary.num_missed, 1U);
  EXPECT_FALSE(summary.dropped);
  EXPECT_THAT(to_warning(summary), HasSubstr("1 of 3 batches had no update"));
}

TEST(LossBook, ByDeliveryALoopThatFetchesAheadIsRefusedWithTheCure) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::by_delivery);
  book.deliver(8);
  book.deliver(8);
  EXPECT_FALSE(book.has_refused()) << "a look at the batches is no update";
  for (int k = 0; k < 2; ++k) {
    try {
      book.update(1.0);
      FAIL() << "must be refused";
    } catch (const std::logic_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("update(loss, batch)"));
    }
  }
  EXPECT_TRUE(book.has_refused());
  EXPECT_EQ(pruner.num_observations(), 0U);
  EXPECT_TRUE(book.update(ids_of(pruner, {0, 8}), 1.0));
}

TEST(LossBook, ByDeliveryTheLastBatchOfALoopThatIsLeftIsNotMissed) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::by_delivery);
  book.deliver(8);
  book.update(1.0);
  book.deliver(8);
  EXPECT_EQ(to_warning(book.end_pass()), "");
  EXPECT_EQ(pruner.position(), 8U);
}

TEST(LossBook, InOrderLossesAreKeptBackUntilThePassEnds) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  for (int k = 0; k < 3; ++k) book.deliver(8);  // workers fetch ahead
  EXPECT_EQ(book.update(loss_at(0)), (PlannedBatch{0, 8}));
  book.deliver(8);
  EXPECT_EQ(book.update(loss_at(8)), (PlannedBatch{8, 8}));
  book.deliver(8);
  EXPECT_EQ(pruner.num_observations(), 0U);
  book.update(loss_at(16));
  book.finish_delivery();
  book.update(loss_at(24));
  EXPECT_EQ(pruner.position(), 32U);
  book.update(loss_at(32));
  EXPECT_EQ(pruner.position(), kNumSamples);
  EXPECT_EQ(to_warning(book.end_pass()), "");
  EXPECT_EQ(pruner.num_observations(), 5U);
  const std::vector<float> scores = pruner.scores();
  for (std::size_t j = 0; j < kNumSamples; ++j) {
    EXPECT_EQ(scores[pruner.plan()->order()[j]], static_cast<float>(loss_at(j / 8 * 8)));
  }
}

TEST(LossBook, InOrderAPassWithFewerUpdatesThanBatchesIsDroppedWithBothNumbers) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  for (int k = 0; k < 5; ++k) {
    book.deliver(8);
    if (k != 4) book.update(1.0);
  }
  book.finish_delivery();
  const PassSummary summary = book.end_pass();
  EXPECT_TRUE(summary.dropped);
  EXPECT_EQ(pruner.num_observations(), 0U);
  EXPECT_THAT(to_warning(summary), HasSubstr("4 updates for 5 batches"));
  EXPECT_THAT(to_warning(summary), HasSubstr("update(loss, batch)"));
}

TEST(LossBook, InOrderASkipAndARepetitionDoNotCancelOut) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  book.deliver(8);
  book.update(loss_at(0));
  book.deliver(8);  // skipped
  book.deliver(8);
  book.update(loss_at(16));
  book.update(loss_at(16));
  const PassSummary summary = book.end_pass();
  EXPECT_EQ(summary.num_updates, summary.num_batches);
  EXPECT_TRUE(summary.dropped);
  EXPECT_THAT(to_warning(summary), HasSubstr("not in turn"));
  EXPECT_EQ(pruner.num_observations(), 0U);
}

TEST(LossBook, InOrderASkipAndARepetitionAreSeenWhileTheLoaderStillAsks) {
  for (const std::vector<int>& num_updates : {std::vector{1, 1, 1, 1, 1}, {1, 1, 2, 0, 1}}) {
    Pruner pruner = make_pruner();
    pruner.start_epoch(0);
    LossBook book(pruner);
    book.begin_pass(Booking::in_order);
    for (int k = 0; k < 5; ++k) book.deliver(8);  // workers have fetched all of them
    for (std::size_t k = 0; k < 5; ++k) {
      book.deliver(0);  // one is handed out, and the loader asks for another
      if (k == 4) book.finish_delivery();
      for (int j = 0; j < num_updates[k]; ++j) book.update(loss_at(8 * k));
    }
    const bool is_plain = num_updates[2] == 1;
    EXPECT_EQ(book.end_pass().dropped, !is_plain);
    EXPECT_EQ(pruner.num_observations(), is_plain ? 5U : 0U);
  }
}

TEST(LossBook, InOrderMoreUpdatesThanBatchesIsRefusedAtOnce) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  book.deliver(8);
  book.update(1.0);
  EXPECT_THROW(book.update(1.0), std::logic_error);
  EXPECT_TRUE(book.end_pass().dropped);
}

TEST(LossBook, InOrderAMeanLossIsRefusedAtOnceIfTheScoreNeedsOneLossPerSample) {
  Pruner pruner = make_pruner(kNumSamples, "sample-loss");
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  book.deliver(2);
  EXPECT_THROW(book.update(1.0), std::invalid_argument);
  EXPECT_THROW(book.update(std::vector<float>(3, 1.0F)), std::invalid_argument);
  EXPECT_EQ(book.update(std::vector<float>{1.0F, 2.0F}), (PlannedBatch{0, 2}));
}

TEST(LossBook, ThePositionFollowsTheIdsAndNotWhatWasDelivered) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  for (int k = 0; k < 4; ++k) book.deliver(8);  // a window of gradient accumulation
  book.update(ids_of(pruner, {0, 8}), loss_at(0));
  EXPECT_EQ(pruner.position(), 8U);
  book.update(ids_of(pruner, {8, 8}), loss_at(8));
  EXPECT_EQ(pruner.position(), 16U);
  book.update(ids_of(pruner, {8, 8}), loss_at(8));  // again
  EXPECT_EQ(pruner.position(), 16U);
  const PassSummary summary = book.end_pass();
  EXPECT_FALSE(summary.dropped);
  EXPECT_EQ(pruner.num_observations(), 3U);
}

TEST(LossBook, AStateSavedInAPassInOrderCarriesWhatWasKeptBack) {
  const auto run = [](bool interrupted) {
    Pruner pruner = make_pruner();
    LossBook book(pruner);
    pruner.start_epoch(0);
    book.begin_pass(Booking::in_order);
    for (std::size_t k = 0; k < 5; ++k) {
      book.deliver(8);
      book.update(loss_at(8 * k));
      if (interrupted && k == 2) {
        book.deliver(8);  // fetched ahead, and fetched again after the resume
        book.before_save();
        const auto bytes = pruner.serialize();
        pruner = make_pruner();
        pruner.deserialize(bytes);
        book.after_load();
        EXPECT_EQ(pruner.position(), 24U);
        EXPECT_EQ(pruner.num_observations(), 0U);
        book.begin_pass(Booking::in_order);
      }
    }
    book.finish_delivery();
    EXPECT_EQ(to_warning(book.end_pass()), "");
    book.before_save();
    return pruner.serialize();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(LossBook, AResumedPassInOrderIsNotContinuedByDelivery) {
  Pruner pruner = make_pruner();
  LossBook book(pruner);
  pruner.start_epoch(0);
  book.begin_pass(Booking::in_order);
  book.deliver(8);
  book.update(1.0);
  book.before_save();
  book.after_load();
  EXPECT_THROW(book.begin_pass(Booking::by_delivery), std::logic_error);
  EXPECT_FALSE(book.end_pass().dropped);  // left as it was saved: one update for one batch
  EXPECT_EQ(pruner.num_observations(), 1U);
  EXPECT_NO_THROW(book.begin_pass(Booking::by_delivery));
}

TEST(LossBook, ADamagedAttachmentIsRefused) {
  Pruner pruner = make_pruner();
  LossBook book(pruner);
  pruner.start_epoch(0);
  book.begin_pass(Booking::in_order);
  book.deliver(8);
  book.update(1.0);
  book.before_save();
  const std::vector<std::byte> whole(pruner.attachment().begin(), pruner.attachment().end());
  for (std::size_t size = 1; size < whole.size(); ++size) {
    pruner.set_attachment({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_THROW(book.after_load(), std::runtime_error) << size;
  }
}

const std::vector<float> kNorms(8, 1.0F);

TEST(LossBook, AClaimIsAnUpdateThatIsObservedWhenItIsSettled) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::by_delivery);
  book.deliver(8);
  const Claim first = book.claim();
  EXPECT_EQ(first.batch, (PlannedBatch{0, 8}));
  EXPECT_EQ(pruner.position(), 8U);
  EXPECT_EQ(pruner.num_observations(), 0U);
  book.deliver(8);
  const Claim second = book.claim();
  EXPECT_EQ(book.num_open_claims(), 2U);
  EXPECT_TRUE(book.settle(second, loss_at(8), kNorms));  // backward passes come in any order
  EXPECT_TRUE(book.settle(first, loss_at(0), kNorms));
  EXPECT_FALSE(book.settle(first, 99.0, kNorms));  // once
  EXPECT_EQ(pruner.num_observations(), 2U);
  const std::vector<float> scores = pruner.scores();
  for (std::size_t j = 0; j < 16; ++j) {
    EXPECT_EQ(scores[pruner.plan()->order()[j]], static_cast<float>(loss_at(j / 8 * 8)));
  }
  EXPECT_EQ(to_warning(book.end_pass()), "");
}

TEST(LossBook, AClaimThatIsNeverSettledIsMissedAndCannotBeSettledLater) {
  for (const Booking booking : {Booking::by_delivery, Booking::in_order}) {
    Pruner pruner = make_pruner();
    pruner.start_epoch(0);
    LossBook book(pruner);
    book.begin_pass(booking);
    Claim lost;
    for (std::size_t k = 0; k < 5; ++k) {
      book.deliver(8);
      const Claim claim = book.claim();
      if (k == 1) {
        lost = claim;
      } else {
        EXPECT_TRUE(book.settle(claim, loss_at(8 * k), kNorms));
      }
    }
    book.finish_delivery();
    const PassSummary summary = book.end_pass();
    EXPECT_FALSE(summary.dropped);
    EXPECT_EQ(summary.num_missed, 1U);
    EXPECT_EQ(summary.num_unsettled, 1U);
    EXPECT_THAT(to_warning(summary), HasSubstr("1 updates with watched outputs had no backward"));
    EXPECT_EQ(pruner.num_observations(), 4U);
    EXPECT_EQ(pruner.num_scored(), 32U);
    EXPECT_FALSE(book.settle(lost, 1.0, kNorms));
    EXPECT_EQ(pruner.num_observations(), 4U);
  }
}

TEST(LossBook, AClaimByIdsIsRightInEveryLoop) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  for (int k = 0; k < 3; ++k) book.deliver(8);
  const Claim claim = book.claim(ids_of(pruner, {8, 8}));
  EXPECT_EQ(pruner.position(), 16U);
  EXPECT_THROW(book.claim(std::span<const SampleIndex>{}), std::invalid_argument);
  EXPECT_TRUE(book.settle(claim, loss_at(8), kNorms));
  EXPECT_EQ(pruner.num_observations(), 1U);  // at once, not when the pass ends
  EXPECT_EQ(pruner.scores()[pruner.plan()->order()[8]], static_cast<float>(loss_at(8)));
  book.end_pass();
  book.claim(ids_of(pruner, {0, 8}));  // outside a pass
  EXPECT_EQ(book.end_pass().num_unsettled, 1U);
  EXPECT_EQ(book.num_open_claims(), 0U);
}

TEST(LossBook, NormsMustBeAsManyAsSamples) {
  Pruner pruner = make_pruner();
  pruner.start_epoch(0);
  LossBook book(pruner);
  book.begin_pass(Booking::in_order);
  book.deliver(8);
  EXPECT_THROW(book.settle(book.claim(), 1.0, std::vector<float>(7)), std::invalid_argument);
  EXPECT_THROW(book.settle(book.claim(ids_of(pruner, {0, 8})), 1.0, std::vector<float>(9)),
               std::invalid_argument);
}

TEST(LossBook, AStateSavedInAPassInOrderCarriesTheNormsThatWereKeptBack) {
  const auto run = [](bool interrupted) {
    Pruner pruner = make_pruner();
    LossBook book(pruner);
    pruner.start_epoch(0);
    book.begin_pass(Booking::in_order);
    for (std::size_t k = 0; k < 5; ++k) {
      book.deliver(8);
      if (k == 0) book.update(loss_at(0));
      if (k == 1) book.claim();  // no backward pass
      if (k > 1) book.settle(book.claim(), loss_at(8 * k), kNorms);
      if (interrupted && k == 3) {
        book.before_save();
        const auto bytes = pruner.serialize();
        pruner = make_pruner();
        pruner.deserialize(bytes);
        book.after_load();
        EXPECT_EQ(pruner.num_observations(), 0U);
        book.begin_pass(Booking::in_order);
      }
    }
    book.finish_delivery();
    EXPECT_FALSE(book.end_pass().dropped);
    EXPECT_EQ(pruner.num_observations(), 4U);
    book.before_save();
    return pruner.serialize();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(LossBook, AnAttachmentOfTheFirstVersionIsRead) {
  Pruner pruner = make_pruner();
  LossBook book(pruner);
  pruner.start_epoch(0);
  std::vector<std::byte> bytes;
  const auto add = [&](auto... values) {
    const std::array array = {values...};
    const std::uint64_t size = array.size();
    const auto length = std::as_bytes(std::span(&size, 1));
    const auto content = std::as_bytes(std::span(array));
    bytes.insert(bytes.end(), length.begin(), length.end());
    bytes.insert(bytes.end(), content.begin(), content.end());
  };
  const auto u64 = [](auto value) { return static_cast<std::uint64_t>(value); };
  add(u64(1), u64(0), u64(0), u64(0));  // version, epoch, begin, is_broken
  add(3U, 2U);                          // samples of each batch
  add(0U, 2U);                          // losses of each update; 0: its mean
  add(1.5);
  add(2.5F, 3.5F);
  pruner.set_attachment(bytes);
  pruner.set_position(5);
  book.after_load();
  EXPECT_FALSE(book.end_pass().dropped);
  EXPECT_EQ(pruner.num_observations(), 2U);
  const auto order = pruner.plan()->order();
  const std::vector<float> scores = pruner.scores();
  for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(scores[order[j]], 1.5F);
  for (std::size_t j = 3; j < 5; ++j) EXPECT_EQ(scores[order[j]], 3.0F);  // last-batch-loss
}

TEST(LossBook, ABatchPastTheEndOfThePlanIsRefused) {
  Pruner pruner = make_pruner();
  LossBook book(pruner);
  EXPECT_THROW(book.begin_pass(Booking::in_order), std::logic_error);
  pruner.start_epoch(0);
  EXPECT_THROW(book.deliver(1), std::logic_error);
  book.begin_pass(Booking::in_order);
  book.deliver(kNumSamples - 1);
  EXPECT_THROW(book.deliver(2), std::out_of_range);
  EXPECT_THROW(book.begin_pass(Booking::in_order), std::logic_error);
}

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
