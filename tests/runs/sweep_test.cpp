#include "runs/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "base/former_name.h"
#include "support/scratch_folder.h"

namespace tamis::runs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Sweep, NamesOneMethodPerValue) {
  EXPECT_EQ((Sweep{"bls-infobatch", "alpha"}).method_name(0.5), "bls-infobatch:alpha=0.5");
  EXPECT_EQ((Sweep{"bls-seta:groups=7", "prune_ratio"}).method_name(0.2),
            "bls-seta:groups=7,prune_ratio=0.2");
}

TEST(Sweep, GrowsInItsFolder) {
  const test::ScratchFolder scratch;
  const Sweep first{"bls-infobatch", "alpha", {0.5, 0.9}};
  write_sweep(scratch.path(), extend_sweep(scratch.path(), first));
  EXPECT_THAT(read_sweep(scratch.path()).values, ElementsAre(0.5, 0.9));
  const Sweep second{"bls-infobatch", "alpha", {0.7, 0.9}};
  EXPECT_THAT(extend_sweep(scratch.path(), second).values, ElementsAre(0.5, 0.7, 0.9));
  EXPECT_THAT(
      [&] {
        extend_sweep(scratch.path(), {"bls-seta", "alpha", {0.7}});
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("holds a sweep of alpha of bls-infobatch")));
}

TEST(Sweep, OfTheFormerNameIsRead) {
  const test::ScratchFolder scratch;
  std::ofstream(scratch / "sweep.json")
      << R"({"format": ")" << detail::kFormerName << R"(-sweep", "format_version": 1,
      "method": "bls-seta", "option": "alpha", "values": [0.5]})";
  EXPECT_THAT(read_sweep(scratch.path()).values, ElementsAre(0.5));
}

TEST(Sweep, IsMissedWhereThereIsNone) {
  const test::ScratchFolder scratch;
  EXPECT_THAT([&] { read_sweep(scratch.path()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("holds no sweep (no sweep.json)")));
}

}  // namespace
}  // namespace tamis::runs
