#include "training/trainer/processor_time.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace tamis::training {

namespace {

namespace fs = std::filesystem;

ProcessorTime time_of_threads() {
  ProcessorTime time;
  std::error_code error;
  for (fs::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    // A thread may end between the two; then there is nothing to read.
    std::ifstream file(task->path() / "schedstat");
    std::uint64_t running = 0;
    std::uint64_t waiting = 0;
    if (!(file >> running >> waiting)) continue;
    time.running += 1e-9 * static_cast<double>(running);
    time.waiting += 1e-9 * static_cast<double>(waiting);
  }
  return time;
}

// Seconds of all processors: used by anything here, and taken by the host of a virtual machine.
struct MachineTime {
  double busy = 0.0;
  double stolen = 0.0;
};

MachineTime time_of_machine() {
  std::ifstream file("/proc/stat");
  std::string name;
  std::uint64_t user = 0;
  std::uint64_t nice = 0;
  std::uint64_t system = 0;
  std::uint64_t idle = 0;
  std::uint64_t iowait = 0;
  std::uint64_t irq = 0;
  std::uint64_t softirq = 0;
  std::uint64_t stolen = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> stolen)) {
    return {};
  }
  const auto ticks = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  return {.busy = static_cast<double>(user + nice + system + irq + softirq) / ticks,
          .stolen = static_cast<double>(stolen) / ticks};
}

}  // namespace

ProcessorTime& ProcessorTime::operator+=(const ProcessorTime& other) {
  running += other.running;
  waiting += other.waiting;
  return *this;
}

ProcessorTime operator-(const ProcessorTime& a, const ProcessorTime& b) {
  return {.running = std::max(0.0, a.running - b.running),
          .waiting = std::max(0.0, a.waiting - b.waiting)};
}

std::optional<double> ProcessorTime::share() const {
  constexpr double kLeastSeconds = 0.01;
  if (running < kLeastSeconds) return std::nullopt;
  return running / (running + waiting);
}

ProcessorTime read_processor_time() {
  ProcessorTime time = time_of_threads();
  const MachineTime machine = time_of_machine();
  if (machine.busy > 0.0) {
    time.waiting += machine.stolen * std::min(1.0, time.running / machine.busy);
  }
  return time;
}

}  // namespace tamis::training
