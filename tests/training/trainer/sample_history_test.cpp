#include "training/trainer/sample_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "support/scratch_folder.h"

namespace tamis::training::sample_history_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// One visit of sample 0.
void visit(SampleHistory& history, float loss, bool is_right) {
  const std::vector<SampleIndex> samples = {0};
  const std::vector<float> losses = {loss};
  history.visit(samples, losses, {&is_right, 1});
}

TEST(SampleHistory, CountsHowOftenASampleWentFromRightToWrong) {
  SampleHistory history(2, 10);
  EXPECT_FALSE(history.forgetting().was_visited(0));
  for (const bool is_right : {false, true, true, false, false, true, false}) {
    visit(history, 1.0F, is_right);
  }
  EXPECT_EQ(history.forgetting().count(0), 2U);
  EXPECT_TRUE(history.forgetting().was_learned(0));
  EXPECT_EQ(history.forgetting().count(1), 0U);
  EXPECT_FALSE(history.forgetting().was_visited(1));
}

TEST(SampleHistory, ASampleThatWasNeverRightIsNotForgotten) {
  SampleHistory history(1, 10);
  for (int k = 0; k < 5; ++k) visit(history, 1.0F, false);
  EXPECT_EQ(history.forgetting().count(0), 0U);
  EXPECT_TRUE(history.forgetting().was_visited(0));
  EXPECT_FALSE(history.forgetting().was_learned(0));
}

TEST(SampleHistory, KeepsTheLastLossWhereAnEpochLeftASampleOut) {
  SampleHistory history(2, 3);
  visit(history, 2.0F, false);
  history.end_epoch(0);
  history.end_epoch(1);
  visit(history, 1.0F, true);
  history.end_epoch(2);
  ASSERT_EQ(history.epochs(), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(history.losses(0)[0], 2.0F);
  EXPECT_EQ(history.losses(1)[0], 2.0F);
  EXPECT_EQ(history.losses(2)[0], 1.0F);
  EXPECT_TRUE(std::isnan(history.losses(2)[1]));
}

TEST(SampleHistory, OfALongRunHasLossesAfterThirtyTwoEpochsTheLastAmongThem) {
  SampleHistory history(1, 200);
  visit(history, 1.0F, true);
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) history.end_epoch(epoch);
  EXPECT_EQ(history.epochs().size(), 32U);
  EXPECT_EQ(history.epochs().back(), 199U);
}

TEST(SampleHistory, IsLoadedAsItWasSaved) {
  const test::ScratchFolder folder;
  SampleHistory saved(2, 4);
  visit(saved, 2.0F, true);
  saved.end_epoch(0);
  visit(saved, 3.0F, false);
  saved.save(folder / "history", 7);
  SampleHistory loaded(2, 4);
  loaded.load(folder / "history", 7, 1);
  EXPECT_EQ(loaded.forgetting().count(0), 1U);
  EXPECT_EQ(loaded.losses(0)[0], 2.0F);
  for (SampleHistory* history : {&saved, &loaded}) history->end_epoch(1);
  EXPECT_EQ(loaded.losses(1)[0], saved.losses(1)[0]);
  // Wrong already: not forgotten a second time.
  visit(loaded, 3.0F, false);
  EXPECT_EQ(loaded.forgetting().count(0), 1U);
}

TEST(SampleHistory, OfAnotherMomentRunOrKindIsRefused) {
  const test::ScratchFolder folder;
  SampleHistory history(2, 4);
  visit(history, 2.0F, true);
  history.end_epoch(0);
  history.save(folder / "history", 7);
  const auto refuses = [&](SampleHistory target, std::uint64_t step, std::uint64_t epochs,
                           const char* message) {
    EXPECT_THAT([&] { target.load(folder / "history", step, epochs); },
                ThrowsMessage<std::runtime_error>(HasSubstr(message)));
  };
  refuses(SampleHistory(2, 4), 8, 1, "field step must be 8, got 7");
  refuses(SampleHistory(2, 4), 7, 2, "tensor snapshots is missing, or of another type or shape");
  refuses(SampleHistory(3, 4), 7, 1, "tensor snapshots is missing, or of another type or shape");
  refuses(SampleHistory(2, 4), 7, 4294967295,
          "of 4 epochs, but the checkpoint has done 4294967295");
  auto bytes = test::read_bytes(folder / "history");
  bytes[bytes.size() - 40] ^= std::byte{1};
  test::write_bytes(folder / "history", bytes);
  EXPECT_THROW(SampleHistory(2, 4).load(folder / "history", 7, 1), std::runtime_error);
}

TEST(ChosenEpochs, AreAllOfAShortRun) {
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) EXPECT_TRUE(is_chosen_epoch(epoch, 5, 10));
}

}  // namespace tamis::training::sample_history_test
