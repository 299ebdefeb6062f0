#include "training/trainer/sweep_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace tamis::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Sweep, NamesOneMethodPerValue) {
  const runs::Sweep sweep = parse_sweep("bls-infobatch", "alpha=0.9,0.5,0");
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

}  // namespace
}  // namespace tamis::training
