#include "base/require_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "base/check.h"

namespace tamis::detail {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double page_size() { return static_cast<double>(::sysconf(_SC_PAGESIZE)); }

double physical_memory() { return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * page_size(); }

// What the container may use, where there is such a limit (cgroup v2).
double container_memory() {
  double bytes = kNoLimit;
  std::ifstream("/sys/fs/cgroup/memory.max") >> bytes;
  return bytes > 0.0 ? bytes : kNoLimit;
}

// What the process may still use, where there is such a limit.
double process_memory() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  double pages_in_use = 0.0;
  std::ifstream("/proc/self/statm") >> pages_in_use;
  return std::max(1.0, static_cast<double>(limit.rlim_cur) - pages_in_use * page_size());
}

std::string in_gigabytes(double bytes) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f", bytes / 1e9);
  return text.data();
}

}  // namespace

void require_memory(double bytes, std::string_view what) {
  // Neither changes while the program runs, and every line of a file asks.
  static const double kMachine = std::min(physical_memory(), container_memory());
  const double available = std::min(kMachine, process_memory());
  if (available > 0.0 && bytes > available) {
    throw std::runtime_error(concat(what, " needs about ", in_gigabytes(bytes),
                                    " GB of memory, this machine has ", in_gigabytes(available)));
  }
}

}  // namespace tamis::detail
