// winnow-training: the commands that need LibTorch. `winnow train`, `compare` and `sweep` run it.
#include "commands.h"
#include "program.h"

namespace {

void add_commands(CLI::App& program) {
  winnow::cli::add_train(program);
  winnow::cli::add_compare(program);
  winnow::cli::add_sweep(program);
}

}  // namespace

int main(int argc, char** argv) { return winnow::cli::run_program(argc, argv, add_commands); }
