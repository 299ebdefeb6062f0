// The frame of a program made of commands: parsing, help, messages and exit codes.
#pragma once

#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace tamis::program {

// Another program that this one ran has failed: this one exits with the same code.
class CommandFailed : public std::runtime_error {
 public:
  CommandFailed(const std::string& message, int exit_code)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// Parses the command line and runs one of the commands that `add_commands` adds. Returns the exit
// code: 0, 1 for a failure or 2 for a mistake on the command line, after one line on standard
// error; 128 + signal for a command that a signal stopped.
int run_program(int argc, char** argv, void (*add_commands)(CLI::App& program));

}  // namespace tamis::program
