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
    simulate_epoch(pruner, kBatch);
    const auto bytes = pruner.serialize();
    EXPECT_TRUE(bytes == expected);
  });
}

TEST_P(LayoutConformance, APreviewIsTheNextPlanAndChangesNothing) {
  run_ranks(3, [&](const auto& communicator) {
    Pruner pruner = make(communicator);
    simulate_epochs(pruner, 0, 2, kBatch);
    pruner.exchange();
    const auto before = pruner.serialize();
    const EpochPlan preview = pruner.preview(2);
    EXPECT_EQ(pruner.serialize(), before);
    EXPECT_EQ(own_samples(preview), own_samples(pruner.start_epoch(2)));
    EXPECT_EQ(preview.num_pruned(), pruner.plan()->num_pruned());
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

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(Layouts, KeepTheAttachmentOfEveryRankInTheState) {
  for (const Layout layout : {Layout::replicated, Layout::sharded}) {
    const PrunerOptions options{.num_samples = 100, .num_epochs = 4, .layout = layout};
    std::vector<std::byte> plain;
    std::vector<std::byte> state;
    run_ranks(3, [&](const auto& communicator) {
      Pruner pruner(options, communicator);
      const auto without = pruner.serialize();
      const std::string text(communicator->rank(), 'x');  // none on rank 0
      pruner.set_attachment(bytes_of(text));
      const auto with = pruner.serialize();
      Pruner loaded(options, communicator);
      loaded.set_attachment(bytes_of("gone"));
      loaded.deserialize(with);
      EXPECT_EQ(loaded.attachment(), bytes_of(text));
      EXPECT_EQ(loaded.serialize(), with);
      loaded.deserialize(without);
      EXPECT_TRUE(loaded.attachment().empty());
      EXPECT_EQ(loaded.serialize(), without);
      if (communicator->rank() != 0) return;
      plain = without;
      state = with;
    });
    Pruner one(options);
    EXPECT_EQ(one.serialize(), plain) << "nothing is written where there is no attachment";
    for (const std::string& error : errors_of_ranks(2, [&](const auto& communicator) {
           Pruner(options, communicator).deserialize(state);
         })) {
      EXPECT_THAT(error, HasSubstr("has attachments of 3 ranks, but the run has 2"));
    }
    EXPECT_THROW(one.deserialize(state), std::runtime_error);
  }
}

// A score of the caller's own: that of the library under another name.
class OwnScore final : public Scorer {
 public:
  explicit OwnScore(std::size_t num_samples) : scorer_(make_scorer({"batch-loss"}, num_samples)) {}
  Spec spec() const override { return {"own"}; }
  std::size_t num_samples() const override { return scorer_->num_samples(); }
  bool observe(const Observation& observation) override { return scorer_->observe(observation); }
  std::span<const float> scores(Array<float>& scratch) const override {
    return scorer_->scores(scratch);
  }
  std::vector<ScorerArray> arrays() override { return scorer_->arrays(); }
  OptionMap numbers() const override { return scorer_->numbers(); }
  void set_numbers(const OptionMap& numbers) override { scorer_->set_numbers(numbers); }
  OptionMap agree(const OptionMap& before, std::span<const OptionMap> after) const override {
    return scorer_->agree(before, after);
  }

 private:
  std::unique_ptr<Scorer> scorer_;
};

TEST(Layouts, RunWithAScoreOfTheCallersOwn) {
  for (const Layout layout : {Layout::replicated, Layout::sharded}) {
    run_ranks(2, [&](const auto& communicator) {
      const PrunerOptions options{
          .num_samples = 301, .num_epochs = 4, .score = Spec{"batch-loss"}, .layout = layout};
      Pruner known(options, communicator);
      const auto make_own = [&] {
        return Pruner(options, std::make_unique<OwnScore>(known.num_kept()),
                      make_policy(options.policy), communicator);
      };
      Pruner own = make_own();
      simulate_epochs(known, 0, 3, kBatch);
      simulate_epochs(own, 0, 2, kBatch);
      Pruner resumed = make_own();
      resumed.deserialize(own.serialize());
      simulate_epochs(resumed, 2, 3, kBatch);
      known.exchange();
      resumed.exchange();
      EXPECT_EQ(resumed.scores(), known.scores());
      EXPECT_EQ(own_samples(resumed.start_epoch(3)), own_samples(known.start_epoch(3)));
    });
  }
}

TEST(Layouts, SayWhatIsWrongWithABatch) {
  for (const Layout layout : {Layout::replicated, Layout::sharded}) {
    run_ranks(2, [&](const auto& communicator) {
      Pruner pruner({.num_samples = 100, .num_epochs = 4, .layout = layout}, communicator);
      EXPECT_THROW(pruner.observe(0, 1, 1.0), std::runtime_error) << "no epoch is running";
      pruner.start_epoch(0);
      const std::vector<float> losses(2, 1.0F);
      EXPECT_THROW(pruner.observe(49, losses), std::out_of_range);
      EXPECT_THROW(pruner.observe(0, 0, 1.0), std::invalid_argument);
      EXPECT_THROW(pruner.observe(0, 2, 1.0), std::invalid_argument) << "needs losses of samples";
      EXPECT_THROW(pruner.observe(std::vector<SampleIndex>{100, 1}, losses), std::out_of_range);
      EXPECT_THROW(pruner.observe(std::vector<SampleIndex>{1}, losses), std::invalid_argument);
      EXPECT_THROW(pruner.set_position(51), std::out_of_range);
      EXPECT_TRUE(pruner.observe(0, losses));
      pruner.exchange();
      EXPECT_GT(pruner.num_observations(), 0U);
    });
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
