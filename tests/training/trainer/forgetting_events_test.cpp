#include "training/trainer/forgetting_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tamis::training::forgetting_events_test {

using ::testing::ElementsAre;

TEST(ForgettingEvents, CountFromRightToWrong) {
  ForgettingEvents events(4);
  for (const bool is_right : {true, false, true, false, false}) events.visit(0, is_right);
  for (const bool is_right : {false, true, true}) events.visit(1, is_right);
  for (const bool is_right : {false, false}) events.visit(2, is_right);
  for (const bool is_right : {true, false, true}) events.visit(3, is_right);
  EXPECT_THAT(events.scores(), ElementsAre(2.0F, 0.0F, 3.0F, 1.0F));
}

}  // namespace tamis::training::forgetting_events_test
