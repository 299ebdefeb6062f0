// RunData: one run folder, read and checked. docs/run_folder.md says what a folder holds, for
// programs in any language that write one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runs/epoch_metrics.h"
#include "runs/metric.h"
#include "runs/run_files.h"

namespace tamis::runs {

inline constexpr const char* kRunFormat = "tamis-run";
// Version 1 had the accuracy wired in; it still reads.
inline constexpr std::uint64_t kRunVersion = 2;

struct RunData {
  std::filesystem::path folder;
  Json config;  // all of config.json, in the form of version 2
  std::string name;
  std::string method;
  std::uint64_t seed = 0;
  std::uint64_t num_train = 0;
  std::uint64_t num_epochs = 0;
  std::vector<Metric> metrics = {};
  std::vector<EpochMetrics> epochs = {};  // so far, from epoch 0

  bool is_finished() const { return epochs.size() == num_epochs; }
  const Metric& headline() const { return headline_of(metrics); }
};

// One finished run in a few numbers.
struct RunResult {
  double value = 0.0;                                      // of the headline after the last epoch
  double pruned_share = 0.0;                               // of all epochs
  double train_seconds = 0.0;                              // without evaluation
  double prune_seconds = 0.0;                              // of these
  std::optional<double> processor_seconds = std::nullopt;  // empty if an epoch does not tell
};

// True if the folder has a run in it, finished or not.
bool is_run(const std::filesystem::path& folder);

// config.json in the form of version 2. Throws std::runtime_error with the file if it breaks the
// format.
Json read_config(const std::filesystem::path& folder);

// The whole run. Throws std::runtime_error with the file, and the line of metrics.jsonl, if the
// folder breaks the format. A last line without its end is a write that was under way, and is left
// out.
RunData read_run(const std::filesystem::path& folder);

// Throws std::invalid_argument if there are no epochs.
RunResult summarize_run(const RunData& run);

// "coco, resnet50": data set, and model if config.json names one.
std::string describe_task(const Json& config);

}  // namespace tamis::runs
