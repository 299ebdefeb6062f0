// Runs of several methods, side by side.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/report/run.h"

namespace tamis::program {

// Runs that differ in their seed only.
struct MethodRuns {
  std::string label;
  // By seed; no seed twice.
  std::vector<Run> runs;
};

struct Comparison {
  std::string name;
  // Label of the method that the others are compared with; empty if there is none.
  std::string baseline;
  // In the order of the table.
  std::vector<MethodRuns> methods;
  // METHOD-seedS of the runs that are planned but not there yet.
  std::vector<std::string> missing;
  // The rows of summary.json; null if there is none.
  nlohmann::json summary;
  // The method, the option that varies, and per value the label of its row; null if it is no sweep.
  nlohmann::ordered_json sweep;
};

// A setting of config.json ("training.epochs"), and its values by label. Settings that no run has
// two values of come with an empty label only.
struct Setting {
  std::string key;
  std::vector<std::pair<std::string, nlohmann::json>> values;

  bool is_common() const { return values.size() == 1 && values.front().first.empty(); }
};

// Reads every folder: comparison folders as they are, and all other runs as one comparison for each
// data set, where runs with the same method and settings but for the seed are one method. A folder
// that is named twice counts once. Throws std::runtime_error if a folder is neither, breaks its
// format, or repeats a seed of the same method and settings.
std::vector<Comparison> read_comparisons(const std::vector<std::string>& folders);

// Everything in config.json but names and seeds, in the order of the file's groups.
std::vector<Setting> settings_of(const Comparison& comparison);

}  // namespace tamis::program
