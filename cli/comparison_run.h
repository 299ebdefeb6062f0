// Runs a comparison and shows how far it is; what `winnow compare` and `winnow sweep` share.
#pragma once

#include <string>

#include "training/compare.h"

namespace winnow::cli {

struct ComparisonOutput {
  std::string command;  // that continues it: "compare"
  bool lines = true;    // one for every run that has ended
  bool live = true;     // one that moves, if standard error is a terminal
  training::Team team = training::Team(nullptr);
  Layout layout = Layout::automatic;
};

// Makes the runs that are missing. Throws Interrupted after a signal, when everything is saved.
training::Summary run_comparison(training::Comparison& comparison, const training::DataSplits& data,
                                 const ComparisonOutput& output);

// Settings, table, and where the results are.
std::string describe_result(const training::Comparison& comparison,
                            const training::Summary& summary, bool quiet);

}  // namespace winnow::cli
