// States whose checksums are right and whose contents are not: none is taken over.
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <limits>
#include <string>

#include "support/rewritten_state.h"
#include "support/scratch_folder.h"
#include "support/state_victim.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

using test::Bytes;
using test::ContainerParts;
using test::contains;
using test::make_run;
using test::message_of;
using test::options_of_run;
using test::rewritten;
using test::ScratchFolder;
using test::Victim;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string refusal(const std::function<void(ContainerParts&)>& edit) {
  return Victim().refuse(rewritten(make_run().serialize(), edit));
}

TEST(StateContents, InfiniteScoresAreRefused) {
  for (const float value : {kInfinity, -kInfinity}) {
    EXPECT_TRUE(
        contains(refusal([&](ContainerParts& parts) { parts.set("scores", 17, value); }),
                 "tensor scores must hold finite numbers or NaN, got an infinite one at 17"));
  }
}

TEST(StateContents, AWeightMustBeAFiniteNumberAboveZero) {
  for (const char* const value : {"nan", "-1", "0", "inf", "1e39"}) {
    EXPECT_TRUE(contains(refusal([&](ContainerParts& parts) { parts.text("rescale") = value; }),
                         "field rescale must be a finite number above 0"))
        << value;
  }
}

TEST(StateContents, OnlySamplesOfTheEpochHaveAWeight) {
  const std::string message = refusal([](ContainerParts& parts) {
    parts.set("plan.kept", 0, std::uint8_t{0});
    parts.set("plan.rescaled", 0, std::uint8_t{1});
  });
  EXPECT_TRUE(contains(message, "tensor plan.rescaled has samples that are not in plan.kept"));
}

TEST(StateContents, GroupsMustHaveSamplesAndFiniteScores) {
  for (const char* const groups : {"-1 0 1 0.5;", "nan 0 1 0.5;", "1e300 0 1 0.5;", "3 1 0 0.5;",
                                   "3 nan 1 0.5;", "3 0 inf 0.5;", "3 0 1 nan;"}) {
    EXPECT_TRUE(
        contains(refusal([&](ContainerParts& parts) { parts.text("report.groups") = groups; }),
                 "field report.groups must be groups of at least one sample with finite scores"))
        << groups;
  }
}

TEST(StateContents, RunningNumbersMustBePossible) {
  for (const char* const initial : {"inf", "1e39"}) {
    EXPECT_TRUE(
        contains(refusal([&](ContainerParts& parts) { parts.text("number.initial") = initial; }),
                 "score batch-loss can never have come to these numbers"))
        << initial;
  }
  PrunerOptions options = options_of_run();
  options.score = Spec{"batch-loss-mean"};
  const Bytes state = make_run(options).serialize();
  for (const char* const count : {"-1", "nan", "0.5", "1e300"}) {
    const Bytes edited = rewritten(
        state, [&](ContainerParts& parts) { parts.text("number.num_observations") = count; });
    EXPECT_TRUE(contains(Victim(options).refuse(edited), "can never have come to these numbers"))
        << count;
  }
  const Bytes infinite =
      rewritten(state, [](ContainerParts& parts) { parts.text("number.mean_loss") = "inf"; });
  EXPECT_TRUE(contains(Victim(options).refuse(infinite), "can never have come to these numbers"));
}

TEST(StateContents, NoEpochHasMoreSamplesThanTheDataSet) {
  EXPECT_TRUE(
      contains(refusal([](ContainerParts& parts) { parts.text("num_samples_planned") = "200000"; }),
               "field num_samples_planned must be at most 40000 for each of the 2 epochs"));
}

// A visit count at its limit must not come round to 0, which would make the score infinite.
TEST(StateContents, FullVisitCountsKeepTheScoreFinite) {
  PrunerOptions options = options_of_run();
  options.num_samples = 10;
  options.score = Spec{"batch-loss-mean"};
  const Bytes full = rewritten(make_run(options).serialize(), [](ContainerParts& parts) {
    for (std::size_t i = 0; i < 10; ++i) parts.set("visits", i, 0xFFFFFFFFU);
  });
  Pruner pruner(options);
  pruner.deserialize(full);
  pruner.start_epoch(2);
  pruner.observe(0, 1, 5.0);
  for (const float score : pruner.scores()) EXPECT_TRUE(std::isfinite(score));
}

TEST(StateContents, FactorsThatNoRunMakesKeepTheScoresFinite) {
  PrunerOptions options = options_of_run();
  options.num_samples = 10;
  options.score = Spec{"reconstruction"};
  Pruner pruner(options);
  pruner.deserialize(rewritten(make_run(options).serialize(), [](ContainerParts& parts) {
    parts.set("factors", 3, std::numeric_limits<float>::lowest());
    parts.set("factors", 4, std::numeric_limits<float>::max());
  }));
  for (const float score : pruner.scores()) EXPECT_FALSE(std::isinf(score));
}

// A few kilobytes must not take the memory of four billion samples.
TEST(StateContents, TheNumberOfSamplesIsNotTrustedBeforeTheirRowsAreThere) {
  const ScratchFolder folder;
  PrunerOptions options = options_of_run();
  options.num_samples = 64;
  const Bytes state = make_run(options).serialize();
  const auto refuse = [&](const std::function<void(ContainerParts&)>& edit) {
    const Bytes edited = rewritten(state, [&](ContainerParts& parts) {
      parts.text("num_samples") = "4000000000";
      edit(parts);
    });
    test::write_bytes(folder / "state", edited);
    return message_of([&] { Pruner::from_file(folder / "state"); });
  };
  EXPECT_TRUE(contains(refuse([](ContainerParts& parts) { parts.tensors.clear(); }),
                       "tensor scores is missing"));
  EXPECT_TRUE(contains(refuse([](ContainerParts& parts) {
                         parts.tensor("scores").shape = {4000000000, 0};
                         parts.tensor("scores").bytes.clear();
                       }),
                       "tensor scores must be F32 of 16000000000 bytes, got F32 of 0"));
}

TEST(StateContents, ManyFieldsAreReadInTimeThatGrowsWithThem) {
  const ScratchFolder folder;
  PrunerOptions options = options_of_run();
  options.num_samples = 64;
  const auto seconds_for = [&](std::size_t count) {
    const Bytes edited = rewritten(make_run(options).serialize(), [&](ContainerParts& parts) {
      for (std::size_t i = 0; i < count; ++i) {
        parts.metadata.emplace_back("number.x" + std::to_string(i), "1");
      }
    });
    test::write_bytes(folder / "state", edited);
    // Time of the processor: others may be using it too.
    const std::clock_t start = std::clock();
    Pruner::from_file(folder / "state");
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  // A lookup per field would take 256 times as long for 16 times as many.
  EXPECT_LT(seconds_for(160'000), 100.0 * std::max(seconds_for(10'000), 0.001));
}

TEST(StateContents, EveryPolicyEndsOnInfiniteScores) {
  std::vector<float> scores(1000, kInfinity);
  for (std::size_t i = 0; i < 300; ++i) scores[i] = -kInfinity;
  const auto view = make_score_view(scores);
  EXPECT_EQ(view->highest(500, {}).count(), 500U);
  EXPECT_EQ(view->highest(800, {}).count(), 800U);
}

TEST(StateContents, AnInitialScoreMustBeFiniteAsAFloat) {
  EXPECT_THROW(make_scorer({"batch-loss", {{"initial_score", 1e308}}}, 4), std::invalid_argument);
  EXPECT_NO_THROW(make_scorer({"batch-loss", {{"initial_score", 1e38}}}, 4));
}

}  // namespace
}  // namespace tamis
