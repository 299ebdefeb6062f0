#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/loss_book.h"
#include "tamis/loss_book.h"

namespace tamis {
namespace {

using test::kNorms;
using test::loss_at;
using test::make_pruner;

// An array of an attachment: its length and its values.
template <typename... Values>
void append(std::vector<std::byte>& bytes, Values... values) {
  const std::array array = {values...};
  const std::uint64_t size = array.size();
  const auto length = std::as_bytes(std::span(&size, 1));
  const auto content = std::as_bytes(std::span(array));
  bytes.insert(bytes.end(), length.begin(), length.end());
  bytes.insert(bytes.end(), content.begin(), content.end());
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

TEST(LossBook, AnAttachmentWithALossThatCannotBeObservedIsRefused) {
  // Whether a mean loss of so many samples is taken.
  const auto is_taken = [](const std::string& score, std::uint32_t count) {
    Pruner pruner = make_pruner(test::kNumSamples, score);
    pruner.start_epoch(0);
    std::vector<std::byte> bytes;
    append(bytes, std::uint64_t{1}, std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0});
    append(bytes, count);
    append(bytes, 0U);
    append(bytes, 1.5);
    bytes.resize(bytes.size() + sizeof(std::uint64_t));  // no losses
    pruner.set_attachment(bytes);
    LossBook book(pruner);
    try {
      book.after_load();
    } catch (const std::runtime_error&) {
      return false;
    }
    book.end_pass();
    return true;
  };
  EXPECT_TRUE(is_taken("last-batch-loss", 3));
  EXPECT_FALSE(is_taken("last-batch-loss", 0));
  EXPECT_FALSE(is_taken("sample-loss", 3));
  EXPECT_FALSE(is_taken("output-gradient", 3));
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
  const auto add = [&](auto... values) { append(bytes, values...); };
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

}  // namespace
}  // namespace tamis
