// tamis: dynamic data pruning from the command line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "program/commands.h"
#include "program/shared/program.h"

namespace {

#ifdef TAMIS_LIBTORCH
// Training lives in a program of its own, beside this one: loading LibTorch takes longer than most
// other commands run.
struct TrainingCommand {
  const char* name;
  const char* summary;
};
constexpr TrainingCommand kTrainingCommands[] = {
    {"train", "Train a model, with or without pruning"},
    {"compare", "Train with several methods and seeds, and compare them fairly"},
    {"sweep", "Train with several values of one option, and show what they change"}};

// Becomes the training program; returns only if that is not possible.
void run_training(char** argv) {
  // Threads that wait for work sleep: spinning ones make training many times slower where other
  // programs use the same cores. OpenMP reads this when torch is loaded.
  if (std::getenv("GOMP_SPINCOUNT") == nullptr) ::setenv("OMP_WAIT_POLICY", "passive", 0);
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
#ifdef TAMIS_LIBTORCH
  for (const auto& command : kTrainingCommands) {
    program.add_subcommand(command.name, command.summary)->callback([] {
      throw std::runtime_error(
          "tamis needs the program tamis-training in its own folder; install both");
    });
  }
#else
  tamis::program::add_compare(program);
#endif
#ifdef TAMIS_REPORT
  tamis::program::add_report(program);
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
