// Nothing depends on the number of threads: plans, states that were loaded, and messages.
#include "base/threads.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/random/shuffle.h"
#include "base/random/subset.h"
#include "core/grouping/kmeans_1d.h"
#include "core/policies/score_masks.h"
#include "core/policies/sharded_view.h"
#include "support/ranks.h"
#include "support/rewritten_state.h"
#include "support/scratch_folder.h"
#include "tamis/tamis.h"

namespace tamis {
namespace {

using detail::kSamplesPerThread;

// Enough for eight threads, and not a multiple of anything.
constexpr std::size_t kNumSamples = 8 * kSamplesPerThread + 77;

const std::vector<float>& scores() {
  static const std::vector<float> scores = [] {
    std::mt19937 random(7);
    std::vector<float> made(kNumSamples);
    for (float& score : made) {
      score = static_cast<float>(random() >> 8U) * static_cast<float>(random() >> 8U) * 0x1p-40F;
      if (random() % 64 == 0) score = kUnscored;
    }
    return made;
  }();
  return scores;
}

// The order, what the policy found out, and the weights of a plan.
struct Outcome {
  std::vector<std::uint32_t> order;
  std::vector<double> numbers;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome outcome_of(const EpochPlan& plan) {
  const SelectionReport& report = plan.report();
  Outcome outcome{{plan.order().begin(), plan.order().end()},
                  {static_cast<double>(plan.selection().rescale), report.threshold.value_or(-1.0),
                   report.within_group_sum_of_squares.value_or(-1.0)}};
  for (const ScoreGroup& group : report.groups) {
    outcome.numbers.insert(outcome.numbers.end(), {static_cast<double>(group.size),
                                                   static_cast<double>(group.low), group.center});
  }
  for (const std::uint64_t word : plan.selection().rescaled.words()) {
    outcome.order.push_back(static_cast<std::uint32_t>(word));
    outcome.order.push_back(static_cast<std::uint32_t>(word >> 32U));
  }
  return outcome;
}

// Plans the second epoch with scores() for the samples that the run keeps.
Outcome plan_with(const Spec& policy, std::size_t threads, std::size_t homogeneous_batch_size = 0,
                  std::shared_ptr<Communicator> communicator = nullptr) {
  const auto layout = communicator ? Layout::sharded : Layout::replicated;
  Pruner pruner({.num_samples = kNumSamples,
                 .num_epochs = 10,
                 .policy = policy,
                 .score = Spec{"sample-loss"},
                 .homogeneous_batch_size = homogeneous_batch_size,
                 .layout = layout,
                 .threads = threads},
                std::move(communicator));
  std::vector<SampleIndex> indices;
  std::vector<float> losses;
  for (std::size_t k = 0; k < pruner.num_kept(); ++k) {
    const std::size_t i = pruner.first_sample() + k;
    if (scores()[i] != scores()[i]) continue;
    indices.push_back(static_cast<SampleIndex>(i));
    losses.push_back(scores()[i]);
  }
  pruner.observe(indices, losses);
  return outcome_of(pruner.preview(1));
}

TEST(Threads, MakeTheSamePlanOfEveryPolicy) {
  for (const PolicyInfo& policy : registered_policies()) {
    const Spec spec{std::string(policy.name)};
    const Outcome one = plan_with(spec, 1);
    EXPECT_GT(one.order.size(), 3'000'000U) << "too few for the shuffle through buckets";
    for (const std::size_t threads : {2U, 7U}) {
      EXPECT_TRUE(plan_with(spec, threads) == one) << policy.name << " " << threads;
    }
  }
}

TEST(Threads, MakeTheSamePlanOfHomogeneousBatches) {
  const Outcome one = plan_with({"infobatch"}, 1, 128);
  EXPECT_TRUE(plan_with({"infobatch"}, 5, 128) == one);
}

TEST(Threads, MakeTheSamePlanOfARankOfAShardedRun) {
  for (const char* const policy : {"infobatch", "seta", "trim"}) {
    std::array<std::vector<Outcome>, 2> outcomes;
    for (const std::size_t threads : {1U, 4U}) {
      std::vector<Outcome>& all = outcomes[threads > 1 ? 1 : 0];
      all.resize(2);
      test::run_ranks(2, [&](std::shared_ptr<Communicator> communicator) {
        const std::size_t rank = communicator->rank();
        all[rank] = plan_with({policy}, threads, 0, communicator);
      });
    }
    EXPECT_TRUE(outcomes[0] == outcomes[1]) << policy;
    EXPECT_FALSE(outcomes[0][0] == outcomes[0][1]) << policy;
  }
}

// Every number of threads; the parts of a plan by themselves, which is quicker.
TEST(Threads, SelectAndShuffleTheSameWithOneToEight) {
  using namespace detail;  // NOLINT(google-build-using-namespace)
  const auto make = [](std::size_t threads) {
    const AllowThreads allow(threads);
    const Bitmap easy = below(scores(), 0.2);
    RandomStream random(3, 1, Purpose::selection);
    // A share with many binary digits, so with many random numbers per word.
    const Bitmap chosen = choose(easy, easy.count(), easy.count() / 3, random);
    Bitmap kept(kNumSamples, true);
    kept -= chosen;
    const auto order = shuffled_positions(kept, kept.count(), 3, 1);
    std::vector<std::uint64_t> result(order.begin(), order.end());
    result.push_back(random.next());  // the stream went on in the same place
    return result;
  };
  const auto one = make(1);
  for (std::size_t threads = 2; threads <= 8; ++threads) {
    EXPECT_TRUE(make(threads) == one) << threads;
  }
}

// Small buckets go on within a block of random numbers, so their places cannot be told beforehand.
TEST(Threads, ShuffleBucketsOfAllSizesTheSame) {
  constexpr std::size_t kLarge = 3 * kSamplesPerThread;
  for (const std::vector<std::size_t>& starts :
       {std::vector<std::size_t>{0, kLarge, 2 * kLarge, 2 * kLarge + 513},
        std::vector<std::size_t>{0, kLarge, kLarge + 512, 2 * kLarge},
        std::vector<std::size_t>{0, 0, 1, kLarge, 2 * kLarge},
        std::vector<std::size_t>{0, 1024, 2049, kLarge, 2 * kLarge + 1, 2 * kLarge + 900}}) {
    std::vector<std::uint32_t> one(starts.back());
    std::iota(one.begin(), one.end(), 0U);
    auto many = one;
    detail::shuffle_buckets(one.data(), starts, 5, 6);
    const detail::AllowThreads allow(4);
    detail::shuffle_buckets(many.data(), starts, 5, 6);
    EXPECT_TRUE(many == one) << starts.size();
  }
}

std::string message_of(Pruner& pruner, const std::filesystem::path& path) {
  try {
    pruner.load(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "loaded";
}

TEST(Threads, LoadTheSameStateAndRefuseTheSameFiles) {
  const test::ScratchFolder folder;
  const PrunerOptions options{
      .num_samples = kNumSamples, .num_epochs = 10, .score = Spec{"batch-loss"}};
  Pruner saved(options);
  std::vector<std::uint32_t> all(kNumSamples);
  std::iota(all.begin(), all.end(), 0U);
  saved.observe(all, 1.5);
  saved.start_epoch(1);
  const auto path = folder / "state.safetensors";
  saved.save(path);
  const std::vector<std::byte> bytes = test::read_bytes(path);

  auto damaged = bytes;
  damaged[damaged.size() / 2] ^= std::byte{1};
  test::write_bytes(folder / "damaged.safetensors", damaged);
  test::write_bytes(folder / "infinite.safetensors",
                    test::rewritten(bytes, [](test::ContainerParts& parts) {
                      constexpr float kInfinity = std::numeric_limits<float>::infinity();
                      parts.set("scores", 5 * kSamplesPerThread + 1, kInfinity);
                      parts.set("scores", kNumSamples - 1, kInfinity);
                    }));
  std::array<std::vector<std::string>, 2> messages;
  for (const std::size_t threads : {1U, 8U}) {
    PrunerOptions with_threads = options;
    with_threads.threads = threads;
    Pruner loaded(with_threads);
    auto& own = messages[threads > 1 ? 1 : 0];
    for (const char* name : {"damaged.safetensors", "infinite.safetensors"}) {
      own.push_back(message_of(loaded, folder / name));
    }
    EXPECT_EQ(loaded.num_scored(), 0U);
    loaded.load(path);
    EXPECT_TRUE(loaded.serialize() == bytes) << threads;
    EXPECT_EQ(loaded.options().threads, threads);
  }
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_NE(messages[0][0].find("does not match its checksum"), std::string::npos);
  EXPECT_NE(messages[0][1].find("infinite one at " + std::to_string(5 * kSamplesPerThread + 1)),
            std::string::npos);
}

TEST(Threads, MustBeAtLeastOne) {
  EXPECT_THROW(Pruner({.num_samples = 10, .num_epochs = 1, .threads = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace tamis
