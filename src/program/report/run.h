// Run folders as the trainer writes them, read and checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tamis::program {

// Counts of scores in bins of equal width from `low` to `high`.
struct ScoreHistogram {
  double low = 0.0;
  double high = 0.0;
  std::vector<std::uint64_t> counts;
};

// One line of metrics.jsonl. A loss that was not finite is NaN.
struct EpochMetrics {
  std::uint64_t samples = 0;
  std::uint64_t steps = 0;
  double train_loss = 0.0;
  double train_accuracy = 0.0;
  double test_loss = 0.0;
  double test_accuracy = 0.0;
  double learning_rate = 0.0;
  double train_seconds = 0.0;
  // Part of train_seconds.
  double prune_seconds = 0.0;
  double test_seconds = 0.0;
  // Empty if nothing was scored.
  std::optional<ScoreHistogram> scores;
};

struct Run {
  std::filesystem::path folder;
  // All of config.json.
  nlohmann::json config;
  std::string name;
  std::string method;
  std::uint64_t seed = 0;
  std::uint64_t num_train = 0;
  std::uint64_t num_epochs = 0;
  // Epochs so far, from epoch 0.
  std::vector<EpochMetrics> epochs;
  // analysis.json; null if there is none.
  nlohmann::json analysis;

  bool is_finished() const { return epochs.size() == num_epochs; }
  // Sums over the epochs so far.
  double train_seconds() const;
  double prune_seconds() const;
  // 1 - samples used / samples of as many full epochs. Requires: one epoch at least.
  double pruned_share() const;
};

// Checks "format" and "format_version" of a document. Throws std::runtime_error.
void require_format(const nlohmann::json& document, const char* format, const std::string& source);

// Throws std::runtime_error with the file, and the line of metrics.jsonl, if the folder does not
// hold to the format. A last line without its end is a write that was under way, and is left out.
Run read_run(const std::filesystem::path& folder);

}  // namespace tamis::program
