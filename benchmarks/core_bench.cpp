// Time of the core's operations and of the floors they are compared with. benchmarks/run.py runs
// this program, puts the Python peers beside it and writes the table. By hand:
//   build/bin/core_bench --benchmark_filter=/1000000$
// TAMIS_BENCH_SCORES names a file of float32 scores, so that the peers see the same; without it
// the scores are gamma(2, 1).
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tamis/tamis.h"

namespace {

using tamis::Array;
using tamis::EpochPlan;
using tamis::Pruner;
using tamis::Spec;

constexpr double kSampleSeconds = 1e-9;

// Scores of the largest size; smaller sizes use the front.
std::span<const float> scores_of(std::size_t n) {
  static Array<float> scores;
  if (scores.size() < n) {
    scores = Array<float>(n);
    if (const char* path = std::getenv("TAMIS_BENCH_SCORES")) {
      std::ifstream file(path, std::ios::binary);
      file.read(reinterpret_cast<char*>(scores.data()),
                static_cast<std::streamsize>(n * sizeof(float)));
      if (!file) throw std::runtime_error(std::string("cannot read enough scores from ") + path);
    } else {
      std::mt19937_64 random(1);
      std::gamma_distribution<float> gamma(2.0F, 1.0F);
      std::generate(scores.begin(), scores.end(), [&] { return gamma(random); });
    }
  }
  return {scores.data(), n};
}

void report_per_sample(benchmark::State& state, std::size_t samples_per_iteration) {
  state.counters["ns_per_sample"] = benchmark::Counter(
      static_cast<double>(samples_per_iteration) * kSampleSeconds,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void floor_memcpy(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const Array<float> from(n, 1.0F);
  Array<float> to(n, 0.0F);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), n * sizeof(float));
    benchmark::ClobberMemory();
  }
  report_per_sample(state, n);
}

// Random batches of a data set of n samples, as a shuffled epoch hands them out.
EpochPlan random_plan(std::size_t n) { return {tamis::Selection::all(n), 1, 0, false}; }

// args: batch size, samples.
void floor_random_writes(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const auto n = static_cast<std::size_t>(state.range(1));
  const auto plan = random_plan(n);
  const std::uint32_t* order = plan.order().data();
  Array<float> values(n, 1.0F);
  std::size_t at = 0;
  for (auto _ : state) {
    for (std::size_t k = 0; k < batch; ++k) values[order[at + k]] = 2.0F;
    benchmark::ClobberMemory();
    at = at + 2 * batch <= n ? at + batch : 0;
  }
  report_per_sample(state, batch);
}

void update(benchmark::State& state, const std::string& score) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const auto n = static_cast<std::size_t>(state.range(1));
  Pruner pruner({.num_samples = n, .num_epochs = 10, .score = Spec{score}});
  pruner.start_epoch(0);
  std::size_t at = 0;
  double loss = 1.0;
  for (auto _ : state) {
    pruner.observe(at, batch, loss);
    benchmark::ClobberMemory();
    at = at + 2 * batch <= n ? at + batch : 0;
    loss = loss < 2.0 ? loss + 1e-6 : 1.0;
  }
  report_per_sample(state, batch);
}

// A run whose samples have the benchmark's scores.
Pruner scored_pruner(std::size_t n, const Spec& policy, std::size_t homogeneous_batch_size = 0,
                     std::size_t threads = 1) {
  Pruner pruner({.num_samples = n,
                 .num_epochs = 1'000'000'000,
                 .policy = policy,
                 .score = Spec{"sample-loss"},
                 .delta = 1.0,
                 .homogeneous_batch_size = homogeneous_batch_size,
                 .threads = threads});
  const auto scores = scores_of(n);
  std::vector<std::uint32_t> batch(1024);
  for (std::size_t at = 0; at < n; at += batch.size()) {
    const std::size_t count = std::min(batch.size(), n - at);
    std::iota(batch.begin(), batch.end(), static_cast<std::uint32_t>(at));
    pruner.observe(std::span<const std::uint32_t>(batch).first(count), scores.subspan(at, count));
  }
  pruner.start_epoch(9);
  return pruner;
}

// From the scores to the next epoch's plan: selection and order.
void plan(benchmark::State& state, const Spec& policy, std::size_t homogeneous_batch_size = 0,
          std::size_t threads = 1) {
  const auto n = static_cast<std::size_t>(state.range(0));
  Pruner pruner = scored_pruner(n, policy, homogeneous_batch_size, threads);
  std::uint64_t epoch = 10;
  for (auto _ : state) benchmark::DoNotOptimize(pruner.start_epoch(epoch++).order().data());
  report_per_sample(state, n);
}

void plan_and_hand_out(benchmark::State& state, const Spec& policy) {
  const auto n = static_cast<std::size_t>(state.range(0));
  Pruner pruner = scored_pruner(n, policy);
  std::vector<tamis::SampleIndex> batch(128);
  std::uint64_t epoch = 10;
  for (auto _ : state) {
    const EpochPlan& made = pruner.start_epoch(epoch++);
    for (std::size_t at = 0; at < made.size(); at += batch.size()) {
      made.copy_to(at, std::span(batch).first(std::min(batch.size(), made.size() - at)));
      benchmark::DoNotOptimize(batch.data());
    }
  }
  report_per_sample(state, n);
}

void std_shuffle(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  Array<std::uint32_t> order(n);
  std::mt19937_64 random(1);
  for (auto _ : state) {
    for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::uint32_t>(i);
    std::shuffle(order.begin(), order.end(), random);
    benchmark::DoNotOptimize(order.data());
  }
  report_per_sample(state, n);
}

// A run in the middle of a pruned epoch: scores, kept and rescaled bits are all there.
std::unique_ptr<Pruner> trained_pruner(std::size_t n, std::size_t threads = 1) {
  auto pruner = std::make_unique<Pruner>(tamis::PrunerOptions{
      .num_samples = n, .num_epochs = 10, .score = Spec{"batch-loss"}, .threads = threads});
  const auto order = random_plan(n);
  for (std::size_t at = 0; at < n; at += 1024) {
    const auto batch = order.order().subspan(at, std::min<std::size_t>(1024, n - at));
    pruner->observe(batch, 1.0 + static_cast<double>(at % 4096) / 4096.0);
  }
  pruner->start_epoch(1);
  return pruner;
}

std::filesystem::path state_path() {
  const char* folder = std::getenv("TAMIS_BENCH_DIR");
  return std::filesystem::path(folder != nullptr ? folder : ".") / "tamis_bench_state.safetensors";
}

void save(benchmark::State& state) {
  const auto pruner = trained_pruner(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) pruner->save(state_path());
  state.counters["bytes_per_sample"] =
      static_cast<double>(std::filesystem::file_size(state_path())) /
      static_cast<double>(state.range(0));
  std::filesystem::remove(state_path());
}

// The floor of save: the same bytes written and synced in one go.
void floor_write(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const std::size_t size = trained_pruner(n)->serialize().size();
  const Array<char> bytes(size, 'x');
  for (auto _ : state) {
    const int file = ::open(state_path().c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    std::size_t written = 0;
    while (written < size) {
      const auto more = ::write(file, bytes.data() + written, size - written);
      if (more <= 0) throw std::runtime_error("cannot write the benchmark's file");
      written += static_cast<std::size_t>(more);
    }
    ::fsync(file);
    ::close(file);
  }
  std::filesystem::remove(state_path());
}

void load(benchmark::State& state, std::size_t threads = 1) {
  const auto pruner = trained_pruner(static_cast<std::size_t>(state.range(0)), threads);
  pruner->save(state_path());
  // Into the page cache, which save() goes around; torch.load finds its file there as well.
  pruner->load(state_path());
  for (auto _ : state) pruner->load(state_path());
  std::filesystem::remove(state_path());
}

Spec with_half(std::string_view name) {
  Spec spec{std::string(name)};
  for (const auto& option : tamis::find_policy(name).options) {
    if (option.name == "prune_ratio") spec.options["prune_ratio"] = 0.5;
    if (option.name == "groups") spec.options["groups"] = 10;
    if (option.name == "window_scale") spec.options["window_scale"] = 0.5;
  }
  return spec;
}

void register_all(std::int64_t max_samples) {
  for (std::int64_t n = 1'000'000; n <= max_samples; n *= 10) {
    const auto add = [&](const std::string& name, auto function) {
      benchmark::RegisterBenchmark(name.c_str(), function)
          ->Arg(n)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    add("memcpy", floor_memcpy);
    add("std_shuffle", std_shuffle);
    for (const auto& info : tamis::registered_policies()) {
      add("plan/" + std::string(info.name),
          [spec = with_half(info.name)](benchmark::State& state) { plan(state, spec); });
    }
    add("plan_and_hand_out/infobatch", [spec = with_half("infobatch")](benchmark::State& state) {
      plan_and_hand_out(state, spec);
    });
    add("plan_homogeneous/infobatch",
        [spec = with_half("infobatch")](benchmark::State& state) { plan(state, spec, 128); });
    add("floor_write", floor_write);
    add("save", save);
    add("load", [](benchmark::State& state) { load(state); });
    // Where threads are worth it, with as many as there are cores.
    const std::size_t num_cores = std::max(1U, std::thread::hardware_concurrency());
    if (n >= 10'000'000 && num_cores > 1) {
      for (const char* policy : {"infobatch", "seta"}) {
        add(std::string("threads/plan/") + policy,
            [spec = with_half(policy), num_cores](benchmark::State& state) {
              plan(state, spec, 0, num_cores);
            });
      }
      add("threads/load", [num_cores](benchmark::State& state) { load(state, num_cores); });
    }
    for (const std::int64_t batch : {32, 128, 1024}) {
      const auto add_update = [&](const std::string& name, auto function) {
        benchmark::RegisterBenchmark(name.c_str(), function)
            ->Args({batch, n})
            ->Unit(benchmark::kMicrosecond);
      };
      add_update("random_writes", floor_random_writes);
      for (const char* score : {"batch-loss", "reconstruction"}) {
        add_update(std::string("update/") + score,
                   [score](benchmark::State& state) { update(state, score); });
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* max_samples = std::getenv("TAMIS_BENCH_MAX_SAMPLES");
  register_all(max_samples != nullptr ? std::atoll(max_samples) : 1'000'000);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
