// `tamis compare --command`: methods times seeds with any training program that keeps the contract
// of docs/run_folder.md.
#pragma once

#include <string>
#include <vector>

#include "program/compare/comparison_flags.h"

namespace CLI {
class App;
}

namespace tamis::program {

struct CommandFlags {
  std::string command;  // empty: not given

  void add(CLI::App& app);
};

// For the end of a help text.
std::string describe_command();

// True if the folder holds a comparison of runs that a command makes.
bool is_command_comparison(const std::string& folder);

// Makes the runs that are missing. Throws Interrupted after a signal, and CommandFailed if the
// program fails.
void compare_with_command(const CommandFlags& command, const ComparisonFlags& flags,
                          const std::vector<std::string>& methods);

}  // namespace tamis::program
