// EpochMetrics: one line of metrics.jsonl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runs/metric.h"

namespace tamis::runs {

// Counts of scores in bins of equal width; the highest score itself is in the last bin.
struct ScoreHistogram {
  double low = 0.0;
  double high = 0.0;
  std::vector<std::uint64_t> counts;

  friend bool operator==(const ScoreHistogram&, const ScoreHistogram&) = default;
};

// Of the scores that are not NaN, in 32 bins; empty if there are none.
std::optional<ScoreHistogram> make_histogram(std::span<const float> scores);

using MetricValues = std::map<std::string, double, std::less<>>;

struct EpochMetrics {
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;  // that were trained on, padding of several processes included
  std::uint64_t pruned = 0;   // of the data set
  std::uint64_t steps = 0;    // 0 if it is not known
  std::optional<double> learning_rate = std::nullopt;  // of the last step
  double train_seconds = 0.0;
  double prune_seconds = 0.0;  // part of train_seconds
  double test_seconds = 0.0;
  // Part of train_seconds: what a static method spent on its scores before the first epoch.
  double score_seconds = 0.0;
  // Of the processor time that the process could have used while it trained, the share that it got,
  // in [0, 1]; empty if it is not known.
  std::optional<double> processor_share = std::nullopt;
  // Of all threads, while the clock counted train_seconds. Other programs on the machine hardly
  // change it.
  std::optional<double> processor_seconds = std::nullopt;
  // By metric. What was not measured after this epoch is missing; what was not finite is NaN.
  MetricValues values = {};
  std::optional<ScoreHistogram> scores = std::nullopt;  // empty if nothing was scored

  // NaN if it is missing.
  double value(const Metric& metric) const;

  friend bool operator==(const EpochMetrics&, const EpochMetrics&) = default;
};

Json to_json(const EpochMetrics& metrics);

// The way back, also from lines of version 1 (see run.h), whose values are those of
// classification_metrics(). Throws std::runtime_error that begins with `source`.
EpochMetrics epoch_from_json(const Json& json, const std::vector<Metric>& metrics,
                             const std::string& source);

}  // namespace tamis::runs
