// The commands of the program. Each one adds itself to the parser and runs as its callback, which
// throws UsageError for a mistake on the command line and other exceptions for failures.
#pragma once

namespace CLI {
class App;
}

namespace tamis::program {

// Feeds a recorded run to a score.
void add_replay(CLI::App& program);
// Shows which samples a policy would use in one epoch.
void add_plan(CLI::App& program);
// Shows and verifies a state file.
void add_inspect(CLI::App& program);
// Runs a pruner on a synthetic loss landscape.
void add_simulate(CLI::App& program);
// Shows what a recorded run tells about its samples.
void add_analyze(CLI::App& program);
// Lists the samples that are hard most often and most lastingly.
void add_suspects(CLI::App& program);
// Says what to prune with.
void add_advise(CLI::App& program);
// Trains a model (needs LibTorch).
void add_train(CLI::App& program);
// Trains with several methods and seeds; without LibTorch, by another program only.
void add_compare(CLI::App& program);
// Trains with several values of one option (needs LibTorch).
void add_sweep(CLI::App& program);
// Shows and compares runs on one page.
void add_report(CLI::App& program);

}  // namespace tamis::program
