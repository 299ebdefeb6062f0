#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <locale>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "support/state_victim.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis {
namespace {

using test::read_bytes;
using test::ScratchFolder;
using test::simulate_epoch;
using test::simulate_epochs;
using test::simulate_step;

constexpr std::size_t kBatch = 32;

PrunerOptions small_options(const std::string& policy, const std::string& score) {
  return {
      .num_samples = 500, .num_epochs = 30, .policy = {policy}, .score = Spec{score}, .seed = 11};
}

// All that can be seen of a plan, numbers as their bits.
using PlanTrace = std::vector<std::uint64_t>;

PlanTrace trace_of(const EpochPlan& plan) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  PlanTrace trace = {plan.epoch(), plan.pruning() ? 1U : 0U};
  for (const std::uint32_t i : plan.order()) {
    trace.insert(trace.end(), {i, bits(static_cast<double>(plan.weight_of(i)))});
  }
  const SelectionReport& report = plan.selection().report;
  trace.insert(trace.end(), {bits(report.threshold.value_or(-1.0)), report.num_below.value_or(0),
                             report.num_kept_of_below.value_or(0), report.window_begin.value_or(0),
                             report.window_end.value_or(0),
                             bits(report.within_group_sum_of_squares.value_or(-1.0))});
  for (const ScoreGroup& group : report.groups) {
    trace.insert(trace.end(), {group.size, bits(static_cast<double>(group.low)),
                               bits(static_cast<double>(group.high)), bits(group.center)});
  }
  return trace;
}

// Finishes the running epoch and all later ones. Returns their plans.
std::vector<PlanTrace> finish(Pruner& pruner) {
  std::vector<PlanTrace> traces;
  for (std::uint64_t epoch = pruner.plan()->epoch(); epoch < pruner.schedule().num_epochs;
       ++epoch) {
    traces.push_back(trace_of(pruner.start_epoch(epoch)));
    simulate_epoch(pruner, kBatch);
  }
  return traces;
}

using PolicyAndScore = std::tuple<std::string, std::string>;

class Resume : public ::testing::TestWithParam<PolicyAndScore> {};

TEST_P(Resume, AtEveryBatchBoundaryOfEpoch7EqualsTheUninterruptedRun) {
  const auto& [policy, score] = GetParam();
  const PrunerOptions options = small_options(policy, score);
  Pruner whole(options);
  simulate_epochs(whole, 0, 7, kBatch);
  whole.start_epoch(7);
  std::vector<std::vector<std::byte>> saved = {whole.serialize()};
  while (whole.position() < whole.plan()->size()) {
    simulate_step(whole, kBatch);
    saved.push_back(whole.serialize());
  }
  const std::vector<PlanTrace> expected = finish(whole);
  const std::vector<std::byte> expected_state = whole.serialize();

  for (std::size_t boundary = 0; boundary < saved.size(); ++boundary) {
    SCOPED_TRACE(boundary);
    Pruner resumed(options);
    resumed.deserialize(saved[boundary]);
    ASSERT_EQ(resumed.serialize(), saved[boundary]);
    ASSERT_EQ(finish(resumed), expected);
    ASSERT_EQ(resumed.serialize(), expected_state);
    ASSERT_EQ(resumed.num_observations(), whole.num_observations());
    ASSERT_EQ(resumed.num_skipped_observations(), whole.num_skipped_observations());
    ASSERT_EQ(resumed.pruned_share(), whole.pruned_share());
    ASSERT_EQ(resumed.progress(), whole.progress());
  }
}

std::vector<PolicyAndScore> all_pairs() {
  std::vector<PolicyAndScore> pairs;
  for (const PolicyInfo& policy : registered_policies()) {
    for (const ScorerInfo& score : registered_scorers())
      pairs.emplace_back(policy.name, score.name);
  }
  return pairs;
}

std::string name_of_pair(const ::testing::TestParamInfo<PolicyAndScore>& pair) {
  std::string name = std::get<0>(pair.param) + "_" + std::get<1>(pair.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(AllPairs, Resume, ::testing::ValuesIn(all_pairs()), name_of_pair);

TEST(State, LeavesNothingOfTheStateBefore) {
  const PrunerOptions options = small_options("infobatch", "batch-loss");
  Pruner saved(options);
  simulate_epochs(saved, 0, 3, kBatch);
  Pruner fresh(options);
  Pruner other(options);
  simulate_epochs(other, 0, 9, kBatch);
  other.start_epoch(9);
  simulate_step(other, kBatch);

  other.deserialize(saved.serialize());
  EXPECT_EQ(other.serialize(), saved.serialize());
  other.deserialize(fresh.serialize());
  EXPECT_EQ(other.serialize(), fresh.serialize());
  EXPECT_EQ(other.plan(), nullptr);
  EXPECT_EQ(other.num_scored(), 0U);
}

TEST(State, InAFileIsTheStateInMemory) {
  const ScratchFolder folder;
  Pruner pruner(small_options("seta", "sample-loss"));
  simulate_epochs(pruner, 0, 4, kBatch);
  pruner.start_epoch(4);
  simulate_step(pruner, kBatch);
  pruner.save(folder / "run.safetensors");
  EXPECT_EQ(read_bytes(folder / "run.safetensors"), pruner.serialize());
  EXPECT_EQ(folder.names(), std::vector<std::string>{"run.safetensors"});

  Pruner loaded(pruner.options());
  loaded.load(folder / "run.safetensors");
  EXPECT_EQ(loaded.serialize(), pruner.serialize());
  EXPECT_EQ(finish(loaded), finish(pruner));
}

TEST(State, ReplacesTheFileBefore) {
  const ScratchFolder folder;
  Pruner pruner(small_options("infobatch", "batch-loss"));
  pruner.save(folder / "run.safetensors");
  simulate_epochs(pruner, 0, 2, kBatch);
  pruner.save(folder / "run.safetensors");
  EXPECT_EQ(read_bytes(folder / "run.safetensors"), pruner.serialize());
  EXPECT_EQ(folder.names().size(), 1U);
}

TEST(State, CreatesAPrunerWithItsOptions) {
  const ScratchFolder folder;
  const PrunerOptions options = {.num_samples = 77,
                                 .num_epochs = 5,
                                 .policy = {"seta", {{"groups", 7}, {"prune_ratio", 0.1 + 0.2}}},
                                 .score = Spec{"batch-loss", {{"alpha", 1.0 / 3.0}}},
                                 .delta = 0.7,
                                 .seed = 0xFFFFFFFFFFFFFFFFU};
  Pruner pruner(options);
  simulate_epochs(pruner, 0, 2, 10);
  pruner.save(folder / "run.safetensors");
  Pruner created = Pruner::from_file(folder / "run.safetensors");
  EXPECT_EQ(created.options().policy, pruner.options().policy);
  EXPECT_EQ(created.options().score->name, "batch-loss");
  EXPECT_EQ(created.options().score->options.at("alpha"), 1.0 / 3.0);
  EXPECT_EQ(created.options().delta, 0.7);
  EXPECT_EQ(created.options().seed, options.seed);
  EXPECT_EQ(created.serialize(), pruner.serialize());
  EXPECT_EQ(finish(created), finish(pruner));
}

TEST(State, MarksUnscoredSamplesAsNotANumber) {
  Pruner pruner(small_options("infobatch", "batch-loss"));
  pruner.observe(std::vector<SampleIndex>{3}, 1.5);
  Pruner loaded(pruner.options());
  loaded.deserialize(pruner.serialize());
  EXPECT_EQ(loaded.num_scored(), 1U);
  EXPECT_EQ(loaded.scores()[3], 1.5F);
  EXPECT_TRUE(std::isnan(loaded.scores()[4]));
}

TEST(State, TakesAtMost4Point3BytesPerSample) {
  const std::size_t n = 1'000'000;
  Pruner pruner({.num_samples = n, .num_epochs = 10, .score = Spec{"batch-loss"}});
  simulate_epochs(pruner, 0, 1, 4096);
  pruner.start_epoch(1);
  ASSERT_GT(pruner.plan()->num_pruned(), 0U);
  EXPECT_LE(static_cast<double>(pruner.serialize().size()), 4.3 * static_cast<double>(n));
}

TEST(State, DoesNotDependOnTheLocaleOfTheProgram) {
  struct Grouping : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  Pruner pruner({.num_samples = 12'345, .num_epochs = 4'000, .policy = {"seta"}, .delta = 0.123});
  simulate_epochs(pruner, 0, 3, 1000);
  const std::vector<std::byte> plain = pruner.serialize();
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::vector<std::byte> grouped = pruner.serialize();
  Pruner loaded(pruner.options());
  EXPECT_NO_THROW(loaded.deserialize(grouped));
  std::locale::global(before);
  EXPECT_EQ(grouped, plain);
}

// A score of the caller's own, with everything that can be saved: a name that must be quoted,
// arrays of both types, one of them longer than a block of checksums, and a number that is
// infinite.
class CustomScorer final : public Scorer {
 public:
  explicit CustomScorer(std::size_t num_samples) : last_(num_samples), visits_(num_samples) {
    for (std::size_t i = 0; i < num_samples; ++i) visits_[i] = 0;
    for (std::size_t i = 0; i < num_samples; ++i) last_[i] = kUnscored;
  }
  Spec spec() const override { return {"my \"own\" \\ score\n\xC3\xA4", {{"rate", 0.1}}}; }
  std::size_t num_samples() const override { return last_.size(); }
  bool observe(const Observation& observation) override {
    for (const std::uint32_t i : observation.indices) {
      last_[i] = static_cast<float>(observation.mean_loss);
      ++visits_[i];
    }
    least_ = std::min(least_, observation.mean_loss);
    return true;
  }
  std::span<const float> scores(Array<float>&) const override {
    return {last_.data(), last_.size()};
  }
  std::vector<ScorerArray> arrays() override {
    return {{"visits", "U32", std::as_writable_bytes(std::span(visits_.begin(), visits_.end()))},
            {"last", "F32", std::as_writable_bytes(std::span(last_.begin(), last_.end()))}};
  }
  OptionMap numbers() const override { return {{"least", least_}}; }
  void set_numbers(const OptionMap& numbers) override { least_ = numbers.at("least"); }

 private:
  Array<float> last_;
  Array<std::uint32_t> visits_;
  double least_ = std::numeric_limits<double>::infinity();
};

Pruner make_custom(std::size_t num_samples) {
  return {{.num_samples = num_samples, .num_epochs = 10},
          std::make_unique<CustomScorer>(num_samples),
          make_policy({"infobatch"})};
}

TEST(State, KeepsAScoreOfTheCallersOwn) {
  // Sizes around a word of the bitmaps, a block of checksums and a chunk of the writer.
  for (const std::size_t n : {1U, 63U, 64U, 65U, 16'384U, 16'385U, 1'048'576U, 1'100'001U}) {
    SCOPED_TRACE(n);
    Pruner pruner = make_custom(n);
    Pruner loaded = make_custom(n);
    loaded.deserialize(pruner.serialize());
    EXPECT_EQ(loaded.scorer().numbers(), pruner.scorer().numbers());
    simulate_epochs(pruner, 0, 1, n / 7 + 1);
    pruner.start_epoch(1);
    loaded.deserialize(pruner.serialize());
    EXPECT_EQ(loaded.serialize(), pruner.serialize());
    EXPECT_EQ(trace_of(*loaded.plan()), trace_of(*pruner.plan()));
  }
}

TEST(State, OfAScoreThatIsNotRegisteredIsRefusedByFromFile) {
  const ScratchFolder folder;
  make_custom(10).save(folder / "run.safetensors");
  const auto create = [&] { Pruner::from_file(folder / "run.safetensors"); };
  EXPECT_TRUE(test::contains(test::message_of(create), "its options cannot be used here"));
}

// From 32 MiB on the page cache is bypassed.
TEST(State, OfManySamplesIsTheSameInAFile) {
  const ScratchFolder folder;
  const std::size_t n = 9'000'001;
  Pruner pruner({.num_samples = n, .num_epochs = 10, .score = Spec{"batch-loss"}});
  simulate_epochs(pruner, 0, 1, 100'000);
  pruner.start_epoch(1);
  pruner.save(folder / "run.safetensors");
  EXPECT_TRUE(read_bytes(folder / "run.safetensors") == pruner.serialize());
  Pruner loaded = Pruner::from_file(folder / "run.safetensors");
  EXPECT_TRUE(loaded.serialize() == pruner.serialize());
}

}  // namespace
}  // namespace tamis
