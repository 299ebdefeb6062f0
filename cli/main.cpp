// winnow: dynamic data pruning from the command line.
#include "commands.h"
#include "program.h"

namespace {

void add_commands(CLI::App& program) {
  winnow::cli::add_replay(program);
  winnow::cli::add_plan(program);
  winnow::cli::add_inspect(program);
  winnow::cli::add_simulate(program);
#ifdef WINNOW_LIBTORCH
  winnow::cli::add_train(program);
  winnow::cli::add_compare(program);
#endif
#ifdef WINNOW_REPORT
  winnow::cli::add_report(program);
#endif
}

}  // namespace

int main(int argc, char** argv) { return winnow::cli::run_program(argc, argv, add_commands); }
