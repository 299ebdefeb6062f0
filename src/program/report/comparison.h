// Runs of several methods, side by side, as the report shows them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runs/summary.h"

namespace tamis::program {

struct ReportComparison {
  std::string name;
  runs::RunTable table;
  runs::Summary summary;
  // The rows of summary.json; null if there is none.
  runs::Json stored_rows;
  // The method, the option that varies, and per value the label of its row; null if it is no sweep.
  runs::Json sweep;
};

// A setting of config.json ("training.batch_size"), and its values by label. Settings that no run
// has two values of come with an empty label only.
struct Setting {
  std::string key;
  std::vector<std::pair<std::string, runs::Json>> values;

  bool is_common() const { return values.size() == 1 && values.front().first.empty(); }
};

// Reads every folder: comparison folders as they are, and all other runs as one comparison for each
// data set and headline metric, where runs with the same method and settings but for the seed are
// one method. A folder that is named twice counts once. Throws std::runtime_error if a folder is
// neither, breaks its format, or repeats a seed of the same method and settings.
std::vector<ReportComparison> read_comparisons(const std::vector<std::string>& folders);

// Everything in config.json but names and seeds, in the order of the file's groups.
std::vector<Setting> settings_of(const runs::RunTable& table);

}  // namespace tamis::program
