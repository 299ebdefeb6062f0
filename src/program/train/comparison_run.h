// Runs a comparison and shows how far it is; what `tamis compare` and `tamis sweep` share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "training/trainer/compare.h"

namespace tamis::program {

// The words of a command's help that differ.
struct ComparisonWords {
  std::string noun;            // "comparison"
  std::string varied;          // what there is one run of per seed: "method"
  std::string baseline;        // help of --baseline
  std::string default_folder;  // "runs/compare-DATA-MODEL"
};

struct ComparisonFlags {
  std::vector<std::uint64_t> seeds;
  std::string baseline;  // empty: not given
  std::string out;
  std::string resume;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;

  void add(CLI::App& command, const ComparisonWords& words);
  // Throws UsageError if --resume comes with any of these, or with `others`.
  void check_resume_alone(const std::string& noun, bool others) const;

  training::RunFolder::Existing existing() const {
    return overwrite ? training::RunFolder::Existing::overwrite
                     : training::RunFolder::Existing::refuse;
  }
};

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

}  // namespace tamis::program
