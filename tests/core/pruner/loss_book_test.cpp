#include "tamis/loss_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/loss_book.h"

namespace tamis {
namespace {

using test::ids_of;
using test::kNorms;
using test::kNumSamples;
using test::loss_at;
using test::make_pruner;
using testing::HasSubstr;

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

}  // namespace
}  // namespace tamis
