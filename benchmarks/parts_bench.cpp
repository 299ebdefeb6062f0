// Time of the parts that a plan is made of, each called by itself on gamma(2, 1) scores, and of the
// copy that plans are compared with. By hand:
//   build/bin/parts_bench --benchmark_filter=/1000000$
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/random/shuffle.h"
#include "base/random/subset.h"
#include "base/simd/kernels.h"
#include "core/grouping/cell_sums.h"
#include "core/grouping/kmeans_1d.h"
#include "core/grouping/score_cells.h"
#include "core/policies/score_masks.h"
#include "core/policies/score_statistics.h"
#include "tamis/array.h"
#include "tamis/bitmap.h"

namespace {

using namespace tamis;          // NOLINT(google-build-using-namespace)
using namespace tamis::detail;  // NOLINT(google-build-using-namespace)

// What the parts of a plan of n samples hand on to each other.
struct Plan {
  explicit Plan(std::size_t n) : scores(n), kept(n, true) {
    std::mt19937_64 random(1);
    std::gamma_distribution<float> gamma(2.0F, 1.0F);
    std::generate(scores.begin(), scores.end(), [&] { return gamma(random); });
    mean = score_statistics(all()).mean;
    easy = below(all(), mean);
    num_easy = easy.count();
    RandomStream stream(1, 1, Purpose::selection);
    half = choose(n, n / 2, stream);
    kept -= easy;
    kept |= choose(easy, num_easy, num_easy / 2, stream);
  }
  std::span<const float> all() const { return {scores.data(), scores.size()}; }

  Array<float> scores;
  double mean = 0.0;
  Bitmap easy;
  std::size_t num_easy = 0;
  Bitmap half;
  Bitmap kept;  // by InfoBatch with a prune_ratio of 0.5
};

const Plan& plan_of(std::size_t n) {
  static std::vector<std::unique_ptr<Plan>> plans;
  for (const auto& plan : plans) {
    if (plan->scores.size() == n) return *plan;
  }
  return *plans.emplace_back(std::make_unique<Plan>(n));
}

void copy(benchmark::State& state, const Plan& plan) {
  Array<float> to(plan.scores.size(), 0.0F);
  for (auto _ : state) {
    std::memcpy(to.data(), plan.scores.data(), to.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
}

void mean(benchmark::State& state, const Plan& plan) {
  for (auto _ : state) benchmark::DoNotOptimize(score_statistics(plan.all()));
}

void compare(benchmark::State& state, const Plan& plan) {
  for (auto _ : state) benchmark::DoNotOptimize(below(plan.all(), plan.mean));
}

void choose_half(benchmark::State& state, const Plan& plan) {
  RandomStream random(1, 2, Purpose::selection);
  for (auto _ : state) {
    benchmark::DoNotOptimize(choose(plan.easy, plan.num_easy, plan.num_easy / 2, random));
  }
}

void list_positions(benchmark::State& state, const Plan& plan) {
  Array<std::uint32_t> order(plan.kept.count());
  const auto words = plan.kept.words();
  for (auto _ : state) {
    kernels().list_positions(words.data(), 0, words.size(), order.begin(), order.end());
    benchmark::ClobberMemory();
  }
}

void shuffled(benchmark::State& state, const Plan& plan) {
  const std::size_t count = plan.kept.count();
  std::uint64_t epoch = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(shuffled_positions(plan.kept, count, 1, epoch++).data());
  }
}

void random_offsets(benchmark::State& state, const Plan& plan) {
  RandomStream random(1, 2, Purpose::order);
  alignas(64) std::array<std::uint32_t, 512> offsets;
  const std::size_t count = plan.kept.count();
  for (auto _ : state) {
    for (std::size_t left = count; left > offsets.size(); left -= offsets.size()) {
      kernels().make_offsets(random.next_block(), static_cast<std::uint32_t>(left), offsets.data());
      benchmark::DoNotOptimize(offsets.data());
    }
  }
}

void histogram(benchmark::State& state, const Plan& plan) {
  const CellMap map = fit_cells(plan.all(), plan.half, false);
  for (auto _ : state) benchmark::DoNotOptimize(sum_cells(plan.all(), plan.half, map).data());
}

void groups(benchmark::State& state, const Plan& plan) {
  for (auto _ : state) benchmark::DoNotOptimize(kmeans_1d(plan.all(), plan.half, 10));
}

// Fisher-Yates alone, of arrays that fit one level of the cache or another.
void fisher_yates(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  Array<std::uint32_t> items(n, 0);
  const std::array<std::size_t, 2> starts = {0, n};
  std::uint64_t epoch = 0;
  for (auto _ : state) {
    shuffle_buckets(items.data(), starts, 1, epoch++);
    benchmark::ClobberMemory();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* const text = std::getenv("TAMIS_BENCH_MAX_SAMPLES");
  const std::int64_t max_samples = text != nullptr ? std::atoll(text) : 1'000'000;
  const auto add = [](const std::string& name, std::int64_t n, auto function) {
    benchmark::RegisterBenchmark(name.c_str(), function)->Arg(n)->Unit(benchmark::kMicrosecond);
  };
  for (std::int64_t n = 1'000'000; n <= max_samples; n *= 10) {
    const auto add_part = [&](const std::string& name, auto function) {
      add(name, n,
          [=](benchmark::State& state) { function(state, plan_of(static_cast<std::size_t>(n))); });
    };
    add_part("part/copy", copy);
    add_part("part/mean", mean);
    add_part("part/below", compare);
    add_part("part/choose", choose_half);
    add_part("part/list", list_positions);
    add_part("part/offsets", random_offsets);
    add_part("part/order", shuffled);
    add_part("part/histogram", histogram);
    add_part("part/groups", groups);
  }
  for (const std::int64_t n : {4'000, 13'700, 60'000, 700'000})
    add("fisher_yates", n, fisher_yates);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
