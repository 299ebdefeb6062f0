// Summary: what the runs of a comparison say, and what they do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tamis/analysis/statistics.h"
#include "training/trainer/epoch_metrics.h"
#include "training/trainer/run_config.h"

namespace tamis::training {

// One finished run in four numbers.
struct RunResult {
  double accuracy = 0.0;       // on the test samples after the last epoch
  double pruned_share = 0.0;   // of all epochs
  double train_seconds = 0.0;  // without evaluation
  double prune_seconds = 0.0;  // of these
};

// Throws std::invalid_argument if there are no metrics.
RunResult summarize_run(std::span<const EpochMetrics> metrics);

// All seeds of one method. Run k of every row has the same seed.
struct SummaryRow {
  std::string method;
  std::vector<RunResult> runs;

  double accuracy_mean = 0.0;
  double accuracy_deviation = 0.0;  // of the sample; NaN for one run
  double pruned_share = 0.0;
  double train_seconds_mean = 0.0;
  double prune_overhead = 0.0;  // prune_seconds / train_seconds
  // Against the baseline, run by run; empty for the baseline itself.
  std::optional<double> time_saved = std::nullopt;
  // Also empty for a single seed, which says nothing about chance.
  std::optional<analysis::Verdict> difference = std::nullopt;
  std::optional<analysis::Interval> time_saved_interval = std::nullopt;
};

struct Summary {
  std::string baseline;
  std::vector<std::uint64_t> seeds;
  double confidence = 0.95;
  std::vector<SummaryRow> rows;
};

struct MethodRuns {
  std::string method;
  std::vector<RunResult> runs;  // in the order of the seeds
};

// Throws std::invalid_argument unless all methods have one run per seed and the baseline is one of
// them.
Summary summarize(const std::vector<MethodRuns>& methods, const std::vector<std::uint64_t>& seeds,
                  const std::string& baseline, double confidence = 0.95);

// The form of summary.json.
Json to_json(const Summary& summary);

// A table of plain text (with the sign for plus or minus as ± or +-), and below it what the columns
// mean and what the seeds cannot tell.
std::string format_summary(const Summary& summary, bool utf8);

}  // namespace tamis::training
