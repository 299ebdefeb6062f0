// Makes the runs of a comparison with the trainer and shows how far it is; what `tamis compare` and
// `tamis sweep` share.
#pragma once

#include <string>

#include "program/compare/comparison_flags.h"
#include "training/trainer/compare.h"

namespace tamis::program {

struct ComparisonOutput {
  std::string command;  // that continues it: "compare"
  ComparisonFlags flags;
  runs::Json more = runs::Json::object();  // of --json
  training::Team team = training::Team(nullptr);
  Layout layout = Layout::automatic;
};

// Makes the runs that are missing and prints the summary. Throws Interrupted after a signal, when
// everything is saved.
void run_and_print(const runs::Comparison& comparison, const training::DataSplits& data,
                   const ComparisonOutput& output);

}  // namespace tamis::program
