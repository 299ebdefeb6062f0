// tamis compare, in a build without LibTorch: the runs are another program's.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "program/commands.h"
#include "program/compare/compare_command.h"
#include "program/shared/arguments.h"

namespace tamis::program {

namespace {

struct CommandArguments {
  CommandFlags command;
  ComparisonFlags comparison;
  std::vector<std::string> methods;
};

}  // namespace

void add_compare(CLI::App& program) {
  auto arguments = std::make_shared<CommandArguments>();
  CLI::App& command = *program.add_subcommand(
      "compare", "Train with several methods and seeds, and compare them fairly");
  arguments->command.add(command);
  add_methods_flag(command, arguments->methods, "what to compare");
  arguments->comparison.add(
      command,
      {.noun = "comparison",
       .varied = "method",
       .baseline = "method that the others are compared with (default: full, else the first)",
       .default_folder = "runs/compare"});
  command.footer(describe_comparison() + "\n" + describe_command() +
                 "\nExample:\n"
                 "  tamis compare --command \"python train.py\" --methods full bls-infobatch\n"
                 "Exit code: 130 or 143 after Ctrl-C or SIGTERM.\n");
  command.callback([arguments] {
    if (arguments->command.command.empty() && arguments->comparison.resume.empty()) {
      throw UsageError(
          "--command is required: this tamis was built without LibTorch and trains with other "
          "programs only; see tamis compare --help");
    }
    compare_with_command(arguments->command, arguments->comparison, arguments->methods);
  });
}

}  // namespace tamis::program
