// What both layouts of several ranks promise, for every policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <ostream>
#include <set>
#include <string>

#include "support/ranks.h"
#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

using test::errors_of_ranks;
using test::own_samples;
using test::run_ranks;
using test::simulate_epoch;
using test::simulate_epochs;
using test::simulate_step;
using testing::HasSubstr;

constexpr std::size_t kSamples = 2003;
constexpr std::size_t kBatch = 16;

struct Case {
  Layout layout;
  std::string policy;
  friend void PrintTo(const Case& it, std::ostream* out) {
    *out << to_text(it.layout) << ' ' << it.policy;
  }
};

class LayoutConformance : public testing::TestWithParam<Case> {
 protected:
  PrunerOptions options() const {
    return {
        .num_samples = kSamples,
        .num_epochs = 8,
        .policy = {GetParam().policy,
                   GetParam().policy == "trim" ? OptionMap{{"warmup_epochs", 1.0}} : OptionMap{}},
        .score = Spec{"batch-loss"},
        .seed = 5,
        .layout = GetParam().layout};
  }
  Pruner make(const std::shared_ptr<Communicator>& communicator,
              Remainder remainder = Remainder::pad) const {
    PrunerOptions all = options();
    all.remainder = remainder;
    return Pruner(all, communicator);
  }
};

TEST_P(LayoutConformance, RanksShareTheSelectedSamples) {
  for (const std::size_t num_ranks : {1U, 2U, 3U, 4U}) {
    std::mutex mutex;
    std::multiset<SampleIndex> all;
    std::set<std::size_t> sizes;
    std::uint64_t num_selected = 0;
    run_ranks(num_ranks, [&](const auto& communicator) {
      Pruner pruner = make(communicator);
      simulate_epochs(pruner, 0, 3, kBatch);
      const EpochPlan& plan = pruner.start_epoch(3);
      const std::lock_guard lock(mutex);
      for (const SampleIndex sample : own_samples(plan)) all.insert(sample);
      sizes.insert(plan.size());
      num_selected = plan.num_selected();
    });
    EXPECT_EQ(all.size(), num_selected);
    EXPECT_EQ(std::set<SampleIndex>(all.begin(), all.end()).size(), num_selected);
    EXPECT_EQ(sizes.size(), 1U) << "equally many samples, so equally many batches";
  }
}

TEST_P(LayoutConformance, DroppingLeavesOutTheRemainderOnly) {
  run_ranks(3, [&](const auto& communicator) {
    Pruner pruner = make(communicator, Remainder::drop);
    simulate_epochs(pruner, 0, 2, kBatch);
    const EpochPlan& plan = pruner.start_epoch(2);
    EXPECT_EQ(own_samples(plan).size(), plan.size());
    EXPECT_LE(3 * plan.size(), plan.num_selected());
    if (GetParam().layout == Layout::replicated) {
      EXPECT_GT(3 * (plan.size() + 1), plan.num_selected());
    }
    simulate_epoch(pruner, kBatch);
    EXPECT_DOUBLE_EQ(pruner.progress(), 3.0 / 8.0);
  });
}

TEST_P(LayoutConformance, GoesOnWithAnotherNumberOfRanks) {
  const test::ScratchFolder folder;
  std::vector<float> saved_scores;
  std::mutex mutex;
  run_ranks(3, [&](const auto& communicator) {
    Pruner pruner = make(communicator);
    simulate_epochs(pruner, 0, 3, kBatch);
    pruner.save(folder / "state");
  });
  std::set<SampleIndex> selected[2];
  for (const std::size_t num_ranks : {1U, 4U}) {
    std::vector<float> scores(kSamples);
    run_ranks(num_ranks, [&](const auto& communicator) {
      Pruner pruner = make(communicator);
      pruner.load(folder / "state");
      EXPECT_DOUBLE_EQ(pruner.progress(), 3.0 / 8.0);
      const std::vector<float> own = pruner.scores();
      const EpochPlan& plan = pruner.start_epoch(3);
      const std::lock_guard lock(mutex);
      std::copy(own.begin(), own.end(),
                scores.begin() + static_cast<std::ptrdiff_t>(pruner.first_sample()));
      for (const SampleIndex sample : own_samples(plan)) {
        selected[num_ranks == 1 ? 0 : 1].insert(sample);
      }
    });
    EXPECT_EQ(std::count_if(scores.begin(), scores.end(), [](float s) { return s == s; }),
              static_cast<std::ptrdiff_t>(Pruner::from_file(folder / "state").num_scored()));
    if (num_ranks == 1) saved_scores = scores;
    for (std::size_t i = 0; i < kSamples; ++i) {
      EXPECT_TRUE(scores[i] == saved_scores[i] || (scores[i] != scores[i])) << i;
    }
  }
  EXPECT_EQ(selected[0], selected[1]);
}

TEST_P(LayoutConformance, ContinuesInTheMiddleOfAnEpochAsIfNothingHadHappened) {
  const test::ScratchFolder folder;
  std::vector<std::byte> expected;
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner = make(communicator);
    simulate_epochs(pruner, 0, 2, kBatch);
    pruner.start_epoch(2);
    for (int k = 0; k < 9; ++k) simulate_step(pruner, kBatch);
    pruner.save(folder / "state");
    simulate_epoch(pruner, kBatch);
    const auto bytes = pruner.serialize();
    if (communicator->rank() == 0) expected = bytes;
  });
  run_ranks(2, [&](const auto& communicator) {
    Pruner pruner = make(communicator);
    pruner.load(folder / "state");
    EXPECT_EQ(pruner.plan()->epoch(), 2U);
    // simulate_step() tells bad losses by the position, which starts at 0 again.
    for (std::size_t begin = 0; begin < pruner.plan()->size(); begin += kBatch) {
      const std::size_t count = std::min(kBatch, pruner.plan()->size() - begin);
      double sum = 0.0;
      for (std::size_t j = begin; j < begin + count; ++j) {
        sum += static_cast<double>(test::simulated_loss(
            static_cast<std::uint32_t>(pruner.plan()->sample(j)), pruner.plan()->epoch()));
      }
      const bool is_bad = (begin / kBatch + 9) % 13 == 12;
      pruner.observe(
          begin, count,
          is_bad ? std::numeric_limits<double>::infinity() : sum / static_cast<double>(count));
      pruner.set_position(begin + count);
    }
    const auto bytes = pruner.serialize();
    EXPECT_TRUE(bytes == expected);
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Layout layout : {Layout::replicated, Layout::sharded}) {
    for (const PolicyInfo& policy : registered_policies()) {
      all.push_back({layout, std::string(policy.name)});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, LayoutConformance, testing::ValuesIn(cases()), [](const auto& it) {
  std::string name = std::string(to_text(it.param.layout)) + "_" + it.param.policy;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Layouts, RefusesRanksWithOtherOptions) {
  const auto difference = [](const std::function<void(PrunerOptions&)>& change) {
    const auto errors = errors_of_ranks(3, [&](const auto& communicator) {
      PrunerOptions options{.num_samples = 100, .num_epochs = 4};
      if (communicator->rank() == 2) change(options);
      Pruner(options, communicator);
    });
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_EQ(errors[1], errors[2]);
    return errors[0];
  };
  EXPECT_THAT(difference([](PrunerOptions& o) { o.seed = 7; }),
              HasSubstr("rank 2 has seed 7 and rank 0 has seed 0"));
  EXPECT_THAT(difference([](PrunerOptions& o) { o.num_samples = 101; }),
              HasSubstr("rank 2 has num_samples 101 and rank 0 has num_samples 100"));
  EXPECT_THAT(difference([](PrunerOptions& o) { o.policy.options["prune_ratio"] = 0.3; }),
              HasSubstr("rank 2 has policy.prune_ratio 0.3 and rank 0 has policy.prune_ratio 0.5"));
  EXPECT_THAT(difference([](PrunerOptions& o) { o.score = Spec{"batch-loss"}; }),
              HasSubstr("rank 2 has score batch-loss and rank 0 has score sample-loss"));
}

TEST(Layouts, TellsAllRanksWhatOneFoundWrong) {
  const auto errors = errors_of_ranks(2, [&](const auto& communicator) {
    PrunerOptions options{.num_samples = 100, .num_epochs = 4};
    if (communicator->rank() == 1) options.policy.options["prune_ratio"] = 2.0;
    Pruner(options, communicator);
  });
  EXPECT_THAT(errors[0], HasSubstr("rank 1: infobatch: prune_ratio must be in [0, 0.9], got 2"));
  EXPECT_THAT(errors[1], HasSubstr("infobatch: prune_ratio must be in [0, 0.9], got 2"));
}

TEST(Layouts, NamesARankThatIsInAnotherEpoch) {
  const auto errors = errors_of_ranks(2, [&](const auto& communicator) {
    Pruner pruner({.num_samples = 100, .num_epochs = 4}, communicator);
    pruner.start_epoch(communicator->rank());
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("rank 1 has epoch 1 and rank 0 has epoch 0"));
  }
}

TEST(Layouts, IsReplicatedUpToTheStatedSize) {
  Pruner small({.num_samples = 1000, .num_epochs = 1}, make_single_process());
  EXPECT_EQ(small.layout(), Layout::replicated);
  // One of 10^7 ranks, so that its part is small.
  Pruner large({.num_samples = kMaxReplicated + 1, .num_epochs = 1},
               std::make_shared<test::LonelyRank>(0, 10'000'000));
  EXPECT_EQ(large.layout(), Layout::sharded);
}

}  // namespace
}  // namespace tamis
