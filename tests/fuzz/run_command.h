// A command of the program, from the command line on.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "program/shared/program.h"

namespace tamis::fuzz {

// What the program prints is not what is looked for. libFuzzer sees to that itself, and keeps
// standard error for its own reports; here TAMIS_FUZZ_LOUD brings it back.
inline void silence() {
#ifndef TAMIS_FUZZ
  const int nothing = ::open("/dev/null", O_WRONLY);
  ::dup2(nothing, STDOUT_FILENO);
  if (std::getenv("TAMIS_FUZZ_LOUD") == nullptr) ::dup2(nothing, STDERR_FILENO);
  ::close(nothing);
#endif
}

// It ends with 0, 1 or 2.
inline void run_command(void (*add_commands)(CLI::App&), std::vector<std::string> arguments) {
  static const bool is_silent = (silence(), true);
  static_cast<void>(is_silent);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int code =
      program::run_program(static_cast<int>(arguments.size()), argv.data(), add_commands);
  if (code < 0 || code > 2) std::abort();
}

}  // namespace tamis::fuzz
