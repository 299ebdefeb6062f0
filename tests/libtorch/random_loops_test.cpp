// Thousands of training loops drawn at random: every loss is observed for its own batch, or its
// update is refused, or its pass is dropped with a warning. Never for another batch.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/coded_data.h"

namespace tamis::libtorch::random_loops_test {

using test::CodedDataset;
using test::Log;
using test::LoggedHandler;
using torch::data::DataLoaderOptions;
using CodedIndexed = Indexed<test::CodedBatch>;

enum class Way { by_delivery, by_ids, in_order };

// What a loop does. In order, one thing cannot be seen: a loop that leaves the first batch out and
// updates the last one twice looks like one that fetches ahead. So a loop that updates a batch
// twice neither leaves batches out, nor fetches ahead, nor goes on after a batch that failed.
struct Habits {
  Way way = Way::by_delivery;
  std::size_t num_samples = 1;
  std::size_t batch_size = 1;
  std::size_t workers = 0;
  std::size_t max_jobs = 1;
  bool ordered = true;
  bool drop_last = false;
  std::size_t ahead = 0;    // batches held while the next is fetched
  double skips = 0.0;       // chance that a batch has no update
  double repeats = 0.0;     // chance that it has two
  double leaves = 0.0;      // chance per batch that the loop is left
  double interferes = 0.0;  // chance per batch that another loader begins
  double fails = 0.0;       // chance per batch that the data set throws

  DataLoaderOptions options() const {
    auto options = DataLoaderOptions(batch_size)
                       .workers(workers)
                       .enforce_ordering(ordered)
                       .drop_last(drop_last);
    if (workers > 0) options.max_jobs(max_jobs);
    return options;
  }
  std::string text() const {
    std::ostringstream out;
    out << "way " << static_cast<int>(way) << " samples " << num_samples << " batch " << batch_size
        << " workers " << workers << " max_jobs " << max_jobs << " ordered " << ordered
        << " drop_last " << drop_last << " ahead " << ahead << " skips " << skips << " repeats "
        << repeats << " leaves " << leaves << " interferes " << interferes << " fails " << fails;
    return out.str();
  }
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  bool chance(double p) { return std::uniform_real_distribution<>()(engine_) < p; }
  double rate(double p) { return chance(p) ? 0.15 : 0.0; }

 private:
  std::mt19937_64 engine_;
};

Habits draw_habits(Draw& draw) {
  Habits habits;
  habits.way = static_cast<Way>(draw.below(3));
  habits.num_samples = 1 + draw.below(60);
  habits.batch_size = 1 + draw.below(8);
  habits.workers = draw.chance(0.3) ? 1 + draw.below(3) : 0;
  habits.max_jobs = 1 + draw.below(5);
  habits.ordered = habits.way == Way::by_delivery || draw.chance(0.7);
  habits.drop_last = draw.chance(0.3);
  habits.ahead = draw.chance(0.3) ? draw.below(3) : 0;
  habits.skips = draw.rate(0.4);
  habits.repeats = draw.rate(0.3);
  habits.leaves = draw.rate(0.3);
  habits.interferes = draw.rate(0.1);
  habits.fails = draw.rate(0.2);
  if (habits.way == Way::in_order &&
      (habits.ahead > 0 || habits.skips > 0.0 || habits.fails > 0.0)) {
    habits.repeats = 0.0;
  }
  return habits;
}

// One loop over some passes, with the loaders that it makes.
class RandomLoop {
 public:
  RandomLoop(Habits habits, Draw& draw)
      : habits_(habits), draw_(draw), logged_(habits.num_samples, 3) {
    handler().on_warning([this](const std::string&) {
      if (handler().last_pass().dropped) num_dropped_ += handler().last_pass().num_updates;
    });
  }

  void run() {
    for (int pass = 0; pass < 4 && handler().progress() < 1.0; ++pass) {
      if (habits_.way == Way::by_delivery) {
        auto loader = handler().loader(handler().wrap(dataset()), habits_.options());
        walk(loader);
      } else {
        auto loader = torch::data::make_data_loader(
            handler().wrap(dataset()), handler().sampler(habits_.options()), habits_.options());
        walk(*loader);
      }
    }
    handler().end_pass();
  }

  // Everything that update took was observed for its own samples, or dropped with its pass.
  void check() const {
    for (const auto& entry : logged_.log->entries) {
      ASSERT_TRUE(Log::is_right(entry))
          << entry.mean_loss << " for " << ::testing::PrintToString(entry.indices);
    }
    ASSERT_EQ(logged_.log->entries.size() + num_dropped_, num_updates_) << habits_.text();
  }
  std::size_t num_updates() const { return num_updates_; }
  std::size_t num_dropped() const { return num_dropped_; }
  std::size_t num_refused() const { return num_refused_; }

 private:
  Handler& handler() { return logged_.handler; }

  CodedDataset dataset() {
    std::set<std::size_t> broken;
    for (std::size_t i = 0; i < habits_.num_samples; ++i) {
      if (draw_.chance(habits_.fails / 4)) broken.insert(i);
    }
    return CodedDataset(habits_.num_samples, std::move(broken));
  }

  void update(const CodedIndexed& batch) {
    try {
      const torch::Tensor loss = batch.losses.mean();
      if (habits_.way == Way::by_ids) {
        handler().update(loss, batch);
      } else {
        handler().update(loss);
      }
      ++num_updates_;
    } catch (const std::logic_error&) {
      ++num_refused_;
    }
  }

  void finish_first(std::deque<CodedIndexed>& held) {
    if (!draw_.chance(habits_.skips)) {
      update(held.front());
      if (draw_.chance(habits_.repeats)) update(held.front());
    }
    held.pop_front();
  }

  // False if the pass has ended. A step whose batch failed is tried again, as a loop might that
  // ignores such batches.
  template <typename Step>
  static bool advance(const Step& step) {
    for (;;) {
      try {
        step();
        return true;
      } catch (const std::logic_error&) {
        return false;
      } catch (const std::exception&) {
        // the data set's, or torch's around it
      }
    }
  }

  template <typename Batches>
  static void try_to_begin(Batches& batches) {
    try {
      batches.begin();
    } catch (const std::out_of_range&) {
      // the last epoch is over
    }
  }

  template <typename Batches>
  void walk(Batches& batches) {
    std::deque<CodedIndexed> held;
    std::optional<decltype(batches.begin())> begin;
    try {
      begin = batches.begin();
    } catch (const std::out_of_range&) {
      return;  // the last epoch is over
    } catch (const std::exception&) {
      return;  // our loader, whose first batch failed
    }
    auto& batch = *begin;
    bool has_batch = false;
    bool goes_on = advance([&] { has_batch = batch != batches.end(); });
    while (goes_on && has_batch) {
      held.push_back(*batch);
      if (held.size() > habits_.ahead) finish_first(held);
      if (draw_.chance(habits_.leaves)) return;
      if (draw_.chance(habits_.interferes)) {
        auto other = torch::data::make_data_loader(
            handler().wrap(dataset()), handler().sampler(habits_.batch_size), habits_.batch_size);
        try_to_begin(*other);
      }
      goes_on = advance([&] {
        ++batch;
        has_batch = batch != batches.end();
      });
    }
    while (!held.empty()) finish_first(held);
  }

  Habits habits_;
  Draw& draw_;
  LoggedHandler logged_;
  std::size_t num_updates_ = 0;
  std::size_t num_dropped_ = 0;
  std::size_t num_refused_ = 0;
};

TEST(RandomLoops, NeverObserveALossForAnotherBatch) {
  constexpr std::uint64_t kLoops = 3000;
  std::size_t num_updates = 0;
  std::size_t num_dropped = 0;
  std::size_t num_refused = 0;
  for (std::uint64_t seed = 0; seed < kLoops; ++seed) {
    Draw draw(seed);
    const Habits habits = draw_habits(draw);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + habits.text());
    RandomLoop loop(habits, draw);
    ASSERT_NO_THROW(loop.run());
    ASSERT_NO_FATAL_FAILURE(loop.check());
    num_updates += loop.num_updates();
    num_dropped += loop.num_dropped();
    num_refused += loop.num_refused();
  }
  // All three happen, and most losses arrive.
  EXPECT_GT(num_updates, 25'000U);
  EXPECT_GT(num_dropped, 500U);
  EXPECT_LT(num_dropped, num_updates / 2);
  EXPECT_GT(num_refused, 500U);
}

}  // namespace tamis::libtorch::random_loops_test
