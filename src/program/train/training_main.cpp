// tamis-training: the commands that need LibTorch. `tamis train`, `compare` and `sweep` run it.
#include "program/commands.h"
#include "program/shared/program.h"

namespace {

void add_commands(CLI::App& program) {
  tamis::program::add_train(program);
  tamis::program::add_compare(program);
  tamis::program::add_sweep(program);
}

}  // namespace

int main(int argc, char** argv) { return tamis::program::run_program(argc, argv, add_commands); }
