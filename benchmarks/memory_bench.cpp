// Peak memory of a run: observes every sample once, plans the next epoch, and prints the process's
// peak as JSON. Usage: memory_bench SAMPLES POLICY [SCORE]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: memory_bench SAMPLES POLICY [SCORE]\n");
    return 2;
  }
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto n = static_cast<std::size_t>(std::atoll(argv[1]));
  const std::string score = argc == 4 ? argv[3] : "batch-loss";

  tamis::Pruner pruner(
      {.num_samples = n, .num_epochs = 10, .policy = {argv[2]}, .score = tamis::Spec{score}});
  auto start = Clock::now();
  const auto& first = pruner.start_epoch(0);
  const double first_plan = seconds_since(start);
  start = Clock::now();
  constexpr std::size_t kBatch = 128;
  for (std::size_t at = 0; at < first.size(); at += kBatch) {
    const std::size_t count = std::min(kBatch, first.size() - at);
    pruner.observe(at, count, 1.0 + static_cast<double>(first.sample(at) % 1000) / 1000.0);
  }
  const double observe = seconds_since(start);
  start = Clock::now();
  const auto& plan = pruner.start_epoch(1);
  const double next_plan = seconds_since(start);

  const double peak = peak_bytes();
  std::printf(
      "{\"samples\": %zu, \"policy\": \"%s\", \"score\": \"%s\", \"peak_bytes\": %.0f, "
      "\"bytes_per_sample\": %.3f, \"first_plan_seconds\": %.3f, \"observe_seconds\": %.3f, "
      "\"plan_seconds\": %.3f, \"plan_size\": %zu}\n",
      n, argv[2], score.c_str(), peak, peak / static_cast<double>(n), first_plan, observe,
      next_plan, plan.size());
  return 0;
}
