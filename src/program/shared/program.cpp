#include "program/shared/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/shared/signals.h"

namespace tamis::program {

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

// CLI11 only says that some command is required.
std::string wrong_command(const CLI::App& program, int argc, char** argv) {
  std::string names;
  for (const CLI::App* command : program.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return argc > 1 ? fmt::format("command must be one of {}, got {}", names, argv[1])
                  : fmt::format("a command is required: {}", names);
}

void run(int argc, char** argv, void (*add_commands)(CLI::App& program)) {
  CLI::App program(
      "Dynamic data pruning: skip, epoch by epoch, the samples that teach a model least.");
  program.name("tamis");
  program.set_version_flag("--version", "tamis " TAMIS_VERSION, "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.require_subcommand(1);
  program.footer(
      "Exit code: 0 if all went well, 1 for a failure, 2 for a mistake on the command line.\n"
      "`tamis COMMAND --help` explains a command. Example: tamis simulate --epochs 5");
  program.get_formatter()->label("SUBCOMMAND", "COMMAND");
  add_commands(program);
  for (CLI::App* command : program.get_subcommands({})) command->group("Commands");
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {
    std::ostringstream text;
    program.exit(request, text, text);
    print(text.str());
  } catch (const CLI::ParseError& error) {
    const auto chosen = program.get_subcommands();
    if (chosen.empty()) {
      throw UsageError(fmt::format("{}; see tamis --help", wrong_command(program, argc, argv)));
    }
    throw UsageError(
        fmt::format("{}; see tamis {} --help", error.what(), chosen.front()->get_name()));
  }
}

// One line, whatever a file name or an argument contains.
int report(int code, std::string_view message) {
  // What LibTorch throws goes on with where it was thrown, frame by frame.
  message = message.substr(0, message.find("\nException raised from"));
  std::string line = fmt::format("tamis: {}", message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  line = printable(line) + '\n';
  print_error(line);
  return code;
}

}  // namespace

int run_program(int argc, char** argv, void (*add_commands)(CLI::App& program)) {
  // A closed pipe and a file that grows too large are failed writes with a message, not a silent
  // death.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  reserve_standard_streams();
  try {
    run(argc, argv, add_commands);
    return 0;
  } catch (const Interrupted& stop) {
    return stop.exit_code();
  } catch (const CommandFailed& error) {
    return report(error.exit_code(), error.what());
  } catch (const UsageError& error) {
    return report(kUsage, error.what());
  } catch (const std::bad_alloc&) {
    return report(kFailure, "not enough memory");
  } catch (const std::exception& error) {
    return report(kFailure, error.what());
  }
}

}  // namespace tamis::program
