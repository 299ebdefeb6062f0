#include "program/train/team_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>

#include "program/shared/arguments.h"
#include "program/shared/spec_flags.h"

namespace tamis::program {

void TeamFlags::add(CLI::App& command) {
  constexpr const char* kGroup = "Several processes";
  command
      .add_option(
          "--layout", layout,
          "which process keeps which scores: automatic, replicated or sharded (default: automatic)")
      ->type_name("NAME")
      ->group(kGroup);
  command
      .add_option("--time-limit", time_limit,
                  "seconds to wait for a process before giving up (default: 30)")
      ->type_name("NUMBER")
      ->group(kGroup);
}

Layout TeamFlags::chosen_layout() const {
  return as_usage([&] { return parse_layout(layout); });
}

training::Team TeamFlags::connect() const {
  if (!(time_limit > 0.0 && time_limit <= 1e9)) {
    throw UsageError(fmt::format("--time-limit must be in (0, 1e9], got {}", time_limit));
  }
  return training::connect_team(std::chrono::milliseconds(std::llround(1000.0 * time_limit)));
}

std::string describe_team() {
  return "Several processes train one model together if a launcher starts them:\n"
         "  torchrun --no_python --nproc_per_node 2 tamis train --epochs 10\n"
         "  mpirun -n 2 tamis train --epochs 10\n"
         "They share every batch, whose size must be a multiple of their number.\n";
}

}  // namespace tamis::program
