// tamis advise: what to prune with, from a short recorded run.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "program/analyze/advice.h"
#include "program/commands.h"
#include "program/shared/output.h"

namespace tamis::program {

namespace {

struct AdviseArguments {
  std::string run;
  bool json = false;
};

}  // namespace

void add_advise(CLI::App& program) {
  auto arguments = std::make_shared<AdviseArguments>();
  CLI::App& command =
      *program.add_subcommand("advise", "Say what to prune with, from a short recorded run");
  command.add_option("RUN", arguments->run, "folder of a run or of a recording")
      ->required()
      ->type_name("");
  command.add_flag("--json", arguments->json, "print JSON");
  command.footer(
      "Replays the recording with every method: how much each would prune, how well its score\n"
      "agrees with the true losses, and how many losses stand out as those of wrong labels do. "
      "The\n"
      "share of a method is what its policy makes of the scores at the end of the recording; a "
      "longer\n"
      "run prunes more or less as its losses spread. The number of wrong labels is an estimate "
      "from\n"
      "two normal components; tamis suspects lists the samples.\n\n"
      "Example:\n"
      "  tamis train --method full --record --epochs 5 --out runs/short\n"
      "  tamis advise runs/short\n");
  command.callback([arguments] {
    const Advice advice = advise(arguments->run);
    print(arguments->json ? format_json(to_json(advice)) : to_text(advice));
  });
}

}  // namespace tamis::program
