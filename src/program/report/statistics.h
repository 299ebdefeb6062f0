// The figures of the comparison table.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "program/report/comparison.h"

namespace tamis::program {

// Accuracy minus that of the baseline, over the seeds that both have finished.
struct AccuracyDifference {
  std::size_t num_pairs = 0;
  double mean = 0.0;
  // 95 % interval; empty for a single pair.
  std::optional<double> low;
  std::optional<double> high;
  // True if the interval excludes 0.
  bool is_supported = false;
};

// One row. Only finished runs count; empty is what they cannot tell. Shares are fractions.
struct MethodSummary {
  std::string label;
  std::size_t num_finished = 0;
  std::optional<double> accuracy_mean;
  // Sample deviation; needs two seeds.
  std::optional<double> accuracy_deviation;
  // Empty for the baseline.
  std::optional<AccuracyDifference> difference;
  std::optional<double> pruned_share;
  std::optional<double> train_seconds_mean;
  // Mean over the seeds of 1 - time / time of the baseline.
  std::optional<double> time_saved;
  // Seconds of pruning per second of training.
  std::optional<double> prune_overhead;
};

// One row per method, in their order. Accuracy is the test accuracy after the last epoch.
std::vector<MethodSummary> summarize(const Comparison& comparison);

// A row in the format of summary.json.
nlohmann::ordered_json to_json(const MethodSummary& summary);

// "" if summary.json, as far as there is one, agrees with the rows; else what differs first.
std::string disagreement(const nlohmann::json& summary_rows,
                         const std::vector<MethodSummary>& rows);

}  // namespace tamis::program
