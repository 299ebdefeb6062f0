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
// Version 1 had the accuracy wired in, version 2 need not have checksums; both still read.
inline constexpr std::uint64_t kRunVersion = 3;

struct RunData {
  std::filesystem::path folder;
  Json config;  // all of config.json, in the form of version 3
  std::string name;
  std::string method;
  std::uint64_t seed = 0;
  std::uint64_t num_train = 0;
  std::uint64_t num_epochs = 0;
  // Epochs of a run on the full data; more than num_epochs if this one saves by training fewer.
  std::uint64_t num_full_epochs = 0;
  std::vector<Metric> metrics = {};
  std::vector<EpochMetrics> epochs = {};  // so far, from epoch 0

  bool is_finished() const { return epochs.size() == num_epochs; }
  const Metric& headline() const { return headline_of(metrics); }
};

// A run that got less of the processor than this was disturbed: its times say little.
inline constexpr double kLeastProcessorShare = 0.9;

// One finished run in a few numbers.
struct RunResult {
  double value = 0.0;          // of the headline after the last epoch
  double pruned_share = 0.0;   // of all epochs of a full run
  double train_seconds = 0.0;  // without evaluation
  double prune_seconds = 0.0;  // of these
  double score_seconds = 0.0;  // of train_seconds, before the first epoch
  std::optional<double> processor_seconds = std::nullopt;  // empty if an epoch does not tell
  std::optional<double> processor_share = std::nullopt;    // empty if it is not known

  bool is_disturbed() const { return processor_share && *processor_share < kLeastProcessorShare; }
};

// True if the folder has a run in it, finished or not.
bool is_run(const std::filesystem::path& folder);

// config.json in the form of version 3. Throws std::runtime_error with the file if it breaks the
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
