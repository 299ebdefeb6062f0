// tamis-training: the commands that need LibTorch. `tamis train`, `compare` and `sweep` run it.
#include "program/commands.h"
#include "program/shared/program.h"

namespace {

void add_commands(CLI::App& program) {
  tamis::cli::add_train(program);
  tamis::cli::add_compare(program);
  tamis::cli::add_sweep(program);
}

}  // namespace

int main(int argc, char** argv) { return tamis::cli::run_program(argc, argv, add_commands); }
