// The flags of `winnow train` and `winnow compare` for several processes.
#pragma once

#include <cstdint>
#include <string>

#include "training/team.h"
#include "winnow/distributed_pruner.h"

namespace CLI {
class App;
}

namespace winnow::cli {

struct TeamFlags {
  std::string layout = "automatic";
  double time_limit = 30.0;  // seconds

  void add(CLI::App& command);

  // Throws UsageError for an unknown name.
  Layout chosen_layout() const;
  // Connects to the other processes if a launcher started several.
  training::Team connect() const;
};

// For the end of a help text.
std::string describe_team();

}  // namespace winnow::cli
