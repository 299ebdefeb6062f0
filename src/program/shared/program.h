// The frame of a program made of commands: parsing, help, messages and exit codes.
#pragma once

namespace CLI {
class App;
}

namespace tamis::program {

// Parses the command line and runs one of the commands that `add_commands` adds. Returns the exit
// code: 0, 1 for a failure or 2 for a mistake on the command line, after one line on standard
// error; 128 + signal for a command that a signal stopped.
int run_program(int argc, char** argv, void (*add_commands)(CLI::App& program));

}  // namespace tamis::program
