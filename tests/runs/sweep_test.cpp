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
  const Sweep sweep = parse_sweep("bls-infobatch", "alpha=0.9,0.5,0");
  EXPECT_EQ(sweep.option, "alpha");
  EXPECT_THAT(sweep.values, ElementsAre(0.0, 0.5, 0.9));
  const auto methods = sweep_methods(sweep, {});
  ASSERT_EQ(methods.size(), 3U);
  EXPECT_EQ(methods[1].name, "bls-infobatch:alpha=0.5");
  EXPECT_EQ(methods[1].score.options.at("alpha"), 0.5);
}

TEST(Sweep, VariesOptionsOfPoliciesAndKeepsThoseOfTheMethod) {
  const auto methods = sweep_methods(parse_sweep("bls-seta:groups=7", "prune-ratio=0.1,0.2"), {});
  EXPECT_EQ(methods[1].name, "bls-seta:groups=7,prune_ratio=0.2");
  EXPECT_EQ(methods[1].policy.options.at("prune_ratio"), 0.2);
  EXPECT_EQ(methods[1].policy.options.at("groups"), 7.0);
  EXPECT_EQ(sweep_methods(parse_sweep("bls-seta", "delta=0.5,1"), {})[0].delta, 0.5);
}

TEST(Sweep, RefusesWhatItCannotVary) {
  for (const char* const text : {"alpha", "=1", "alpha=", "alpha=x", "alpha=0.5,0.5"}) {
    EXPECT_THROW(parse_sweep("bls-infobatch", text), std::invalid_argument) << text;
  }
  EXPECT_THAT([] { sweep_methods(parse_sweep("full", "alpha=0.5"), {}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("has no option alpha")));
  EXPECT_THAT([] { sweep_methods(parse_sweep("bls-seta", "alpha=1"), {}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("alpha")));
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
