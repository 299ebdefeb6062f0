// A run in memory: observes every sample once, plans the next epoch, saves the state in a folder
// and loads it, and prints as JSON what that took, with the peak of the memory before it is saved.
// Usage: memory_bench SAMPLES POLICY [FOLDER [THREADS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tamis/tamis.h"

namespace {

// The peak of this program. getrusage would also count the process that started it.
double peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024.0;
  }
  throw std::runtime_error("/proc/self/status has no VmHWM");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    std::fprintf(stderr, "usage: memory_bench SAMPLES POLICY [FOLDER [THREADS]]\n");
    return 2;
  }
  using Clock = std::chrono::steady_clock;
  const auto seconds_of = [](const auto& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto n = static_cast<std::size_t>(std::atoll(argv[1]));
  const auto threads = static_cast<std::size_t>(argc == 5 ? std::atoll(argv[4]) : 1);

  tamis::Pruner pruner({.num_samples = n,
                        .num_epochs = 10,
                        .policy = {argv[2]},
                        .score = tamis::Spec{"batch-loss"},
                        .threads = threads});
  const double first_plan = seconds_of([&] { pruner.start_epoch(0); });
  const double observe = seconds_of([&] {
    const tamis::EpochPlan& first = *pruner.plan();
    constexpr std::size_t kBatch = 128;
    for (std::size_t at = 0; at < first.size(); at += kBatch) {
      const std::size_t count = std::min(kBatch, first.size() - at);
      pruner.observe(at, count, 1.0 + static_cast<double>(first.sample(at) % 1000) / 1000.0);
    }
  });
  const double next_plan = seconds_of([&] { pruner.start_epoch(1); });
  const std::size_t plan_size = pruner.plan()->size();
  const double peak = peak_bytes();
  const auto per_sample = [&](double bytes) { return bytes / static_cast<double>(n); };
  std::printf(
      "{\"samples\": %zu, \"policy\": \"%s\", \"threads\": %zu, \"bytes_per_sample\": %.3f, "
      "\"first_plan_seconds\": %.3f, \"observe_seconds\": %.3f, \"plan_seconds\": %.3f, "
      "\"plan_size\": %zu",
      n, argv[2], threads, per_sample(peak), first_plan, observe, next_plan, plan_size);
  if (argc > 3) {
    const auto path = std::filesystem::path(argv[3]) / "memory_bench.safetensors";
    const double save = seconds_of([&] { pruner.save(path); });
    const auto size = static_cast<double>(std::filesystem::file_size(path));
    pruner.load(path);  // into the page cache, which save() goes around
    const double load = seconds_of([&] { pruner.load(path); });
    std::filesystem::remove(path);
    std::printf(
        ", \"save_seconds\": %.3f, \"load_seconds\": %.3f, "
        "\"file_bytes_per_sample\": %.3f",
        save, load, per_sample(size));
  }
  std::printf("}\n");
  return 0;
}
