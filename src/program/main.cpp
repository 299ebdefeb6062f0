// tamis: dynamic data pruning from the command line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "program/commands.h"
#include "program/shared/program.h"

namespace {

struct CommandElsewhere {
  const char* name;
  const char* summary;
};
constexpr CommandElsewhere kTrain = {"train", "Train a model, with or without pruning"};
constexpr CommandElsewhere kSweep = {
    "sweep", "Train with several values of one option, and show what they change"};

// A command that this program only names. Whatever its arguments are, the answer is the message.
void add_message(CLI::App& program, const CommandElsewhere& command, const std::string& message) {
  CLI::App& added = *program.add_subcommand(command.name, command.summary);
  added.allow_extras()->footer(message);
  added.callback([message] { throw std::runtime_error(message); });
}

#ifdef TAMIS_LIBTORCH
// Training lives in a program of its own, beside this one: loading LibTorch takes longer than most
// other commands run.
constexpr CommandElsewhere kTrainingCommands[] = {
    kTrain, {"compare", "Train with several methods and seeds, and compare them fairly"}, kSweep};

// Becomes the training program; returns only if that is not possible.
void run_training(char** argv) {
  // Threads that wait for work sleep: spinning ones make training many times slower where other
  // programs use the same cores. OpenMP reads this when torch is loaded.
  if (std::getenv("GOMP_SPINCOUNT") == nullptr) ::setenv("OMP_WAIT_POLICY", "passive", 0);
  // What torch's own sockets say of a process that is late or gone reaches us as an exception.
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  ::execv((self.parent_path() / "tamis-training").c_str(), argv);
}
#endif

void add_commands(CLI::App& program) {
  tamis::program::add_replay(program);
  tamis::program::add_plan(program);
  tamis::program::add_inspect(program);
  tamis::program::add_simulate(program);
  tamis::program::add_analyze(program);
  tamis::program::add_suspects(program);
  tamis::program::add_advise(program);
#ifdef TAMIS_LIBTORCH
  for (const auto& command : kTrainingCommands) {
    add_message(program, command,
                "tamis needs the program tamis-training in its own folder; install both");
  }
#else
  tamis::program::add_compare(program);
  for (const auto& command : {kTrain, kSweep}) {
    add_message(program, command,
                std::string(command.name) +
                    " needs LibTorch, which this tamis was built without: `make build` in a clone "
                    "of the sources builds one that trains. To prune in your own training: pip "
                    "install tamis[torch]; tamis compare --command compares such runs");
  }
#endif
#ifdef TAMIS_REPORT
  tamis::program::add_report(program);
#else
  add_message(
      program, {"report", "Show and compare runs on one page"},
      "report needs its page, which this tamis was built without: install Node.js and npm and "
      "build again, or install a wheel (pip install --only-binary tamis tamis)");
#endif
}

}  // namespace

int main(int argc, char** argv) {
#ifdef TAMIS_LIBTORCH
  for (const auto& command : kTrainingCommands) {
    if (argc > 1 && std::string_view(argv[1]) == command.name) run_training(argv);
  }
#endif
  return tamis::program::run_program(argc, argv, add_commands);
}
