// The flags of `tamis train` and `tamis compare` for several processes.
#pragma once

#include <string>

#include "tamis/layout.h"
#include "training/trainer/team.h"

namespace CLI {
class App;
}

namespace tamis::program {

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

}  // namespace tamis::program
