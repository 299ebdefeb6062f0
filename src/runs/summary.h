// Summary: what the runs of a comparison say, and what they do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runs/run.h"
#include "tamis/analysis/statistics.h"

namespace tamis::runs {

// Runs that differ in their seed only.
struct MethodRuns {
  std::string label;
  std::vector<RunData> runs;  // no seed twice
};

// Runs of several methods, side by side.
struct RunTable {
  std::string baseline;  // label of the method that the others are compared with; empty: none
  std::vector<MethodRuns> methods;
  std::vector<std::string> missing;  // METHOD-seedS of those that are planned but not there yet
  // Value of the headline whose time of arrival is compared; empty: none.
  std::optional<double> reach = std::nullopt;
};

// Fewer seeds than these support no difference, however far apart the methods are.
inline constexpr std::size_t kLeastSeeds = 3;

// The headline minus that of the baseline, over the seeds that both have finished. The deviation
// counts as at least a quarter of that of all methods' differences together, and a fiftieth of what
// the two methods' own deviations give: seeds that agree by chance must not make an interval
// vanish.
struct Difference {
  std::size_t num_pairs = 0;
  double mean = 0.0;
  // Of the interval. Empty for a single pair, and if both methods give the same with every seed.
  std::optional<double> low = std::nullopt;
  std::optional<double> high = std::nullopt;
  bool is_supported = false;  // the interval excludes 0, and there are kLeastSeeds pairs

  bool is_judged() const { return num_pairs >= kLeastSeeds && low.has_value(); }
};

// The difference to a row that only trains on fewer samples, see equal_budget.h.
struct BudgetDifference {
  std::string label;
  Difference difference;
};

// When the headline has a stated value, see reach.h.
struct Reach {
  std::size_t num_reached = 0;                   // seeds that come to it
  std::optional<double> seconds = std::nullopt;  // mean over these
  std::optional<double> share_of_baseline = std::nullopt;
};

struct SeedResult {
  std::uint64_t seed = 0;
  RunResult result;
};

// One method. Only finished runs count; empty is what they cannot tell. Shares are fractions.
struct SummaryRow {
  std::string label;
  std::vector<SeedResult> runs = {};  // the finished ones, by seed
  std::optional<double> mean = std::nullopt;
  std::optional<double> deviation = std::nullopt;  // of the sample; needs two seeds
  // Against the baseline, seed by seed; empty for the baseline itself.
  std::optional<Difference> difference = std::nullopt;
  std::optional<double> pruned_share = std::nullopt;
  std::optional<double> train_seconds_mean = std::nullopt;
  // Mean of 1 - time / time of the baseline: processor time where Summary says so.
  std::optional<double> time_saved = std::nullopt;
  std::optional<analysis::Interval> time_saved_interval = std::nullopt;  // needs two pairs
  std::optional<double> prune_overhead = std::nullopt;  // seconds of pruning per second of training
  double score_seconds_mean = 0.0;  // of static methods, part of the training time
  std::size_t num_disturbed = 0;    // runs that got too little of the processor
  bool is_budget_baseline = false;
  std::vector<BudgetDifference> equal_budget = {};
  std::optional<Reach> reach = std::nullopt;

  // Pruning cannot do that: something else slowed the baseline's runs down.
  bool saves_more_than_pruned() const;
};

struct Summary {
  Metric metric;  // the headline
  std::string baseline;
  double confidence = 0.95;
  // All runs tell their processor time, so time_saved and reach are of that; otherwise of the
  // clock's.
  bool has_processor_time = false;
  std::vector<SummaryRow> rows;  // in the order of the table
  std::optional<double> reach_value = std::nullopt;

  // Of the row that all values are written like.
  MetricFormat format() const;
};

// The headline of one row of a summary minus another's, over the seeds that both have finished;
// empty if there is none.
std::optional<Difference> paired_difference(const Summary& summary, const SummaryRow& row,
                                            const SummaryRow& other);

// Throws std::runtime_error if there is no run, or if two of them have different headlines.
Summary summarize(const RunTable& table, double confidence = 0.95);

// The form of a row of summary.json, and of the whole file.
Json to_json(const SummaryRow& row);
Json to_json(const Summary& summary);

// A table of plain text (with the sign for plus or minus as ± or +-), and below it what the columns
// mean and what the seeds cannot tell. Leaves out the columns that matter least if the table would
// be wider than `width`; 0: any width will do.
std::string format_summary(const Summary& summary, bool utf8, std::size_t width = 0);

// "8 s", "4:07 min", "1:02:03 h".
std::string format_duration(double seconds);
// "12,345 samples/s".
std::string format_speed(std::uint64_t samples, double seconds);
// "epoch 3/16  test accuracy 87.99 %  train loss 0.3121  pruned 24.1 %  12,345 samples/s  4.1 s"
std::string format_epoch(const EpochMetrics& epoch, const std::vector<Metric>& metrics,
                         std::uint64_t num_epochs);

}  // namespace tamis::runs
