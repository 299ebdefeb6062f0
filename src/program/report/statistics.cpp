#include "program/report/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tamis/analysis/statistics.h"

namespace tamis::program {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::vector<const Run*> finished_runs(const MethodRuns& method) {
  std::vector<const Run*> runs;
  for (const Run& run : method.runs) {
    if (run.is_finished()) runs.push_back(&run);
  }
  return runs;
}

double accuracy_of(const Run& run) { return run.epochs.back().test_accuracy; }

// Runs of both methods with the same seed.
struct Pairs {
  std::vector<const Run*> treated;
  std::vector<const Run*> baseline;
};

Pairs pair_by_seed(const std::vector<const Run*>& treated,
                   const std::vector<const Run*>& baseline) {
  Pairs pairs;
  for (const Run* run : treated) {
    const auto partner = std::find_if(baseline.begin(), baseline.end(),
                                      [&](const Run* other) { return other->seed == run->seed; });
    if (partner == baseline.end()) continue;
    pairs.treated.push_back(run);
    pairs.baseline.push_back(*partner);
  }
  return pairs;
}

template <typename Function>
std::vector<double> map_runs(const std::vector<const Run*>& runs, Function function) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const Run* run : runs) values.push_back(function(*run));
  return values;
}

AccuracyDifference accuracy_difference(const Pairs& pairs) {
  const std::vector<double> treated = map_runs(pairs.treated, accuracy_of);
  const std::vector<double> baseline = map_runs(pairs.baseline, accuracy_of);
  const analysis::Verdict verdict = analysis::compare_paired(treated, baseline);
  AccuracyDifference difference;
  difference.num_pairs = verdict.num_pairs;
  difference.mean = verdict.mean;
  if (verdict.num_pairs > 1) {
    difference.low = verdict.low;
    difference.high = verdict.high;
    difference.is_supported = verdict.is_supported;
  }
  return difference;
}

std::optional<double> time_saved(const Pairs& pairs) {
  double sum = 0.0;
  for (std::size_t k = 0; k < pairs.treated.size(); ++k) {
    const double baseline = pairs.baseline[k]->train_seconds();
    if (!(baseline > 0.0)) return std::nullopt;
    sum += 1.0 - pairs.treated[k]->train_seconds() / baseline;
  }
  return sum / static_cast<double>(pairs.treated.size());
}

MethodSummary summarize_method(const MethodRuns& method) {
  const std::vector<const Run*> runs = finished_runs(method);
  MethodSummary row;
  row.label = method.label;
  row.num_finished = runs.size();
  if (runs.empty()) return row;
  const std::vector<double> accuracies = map_runs(runs, accuracy_of);
  row.accuracy_mean = analysis::mean(accuracies);
  if (runs.size() > 1) row.accuracy_deviation = analysis::standard_deviation(accuracies);
  row.pruned_share =
      analysis::mean(map_runs(runs, [](const Run& run) { return run.pruned_share(); }));
  const std::vector<double> seconds =
      map_runs(runs, [](const Run& run) { return run.train_seconds(); });
  const std::vector<double> pruning =
      map_runs(runs, [](const Run& run) { return run.prune_seconds(); });
  row.train_seconds_mean = analysis::mean(seconds);
  if (*row.train_seconds_mean > 0.0) {
    row.prune_overhead = analysis::mean(pruning) / *row.train_seconds_mean;
  }
  return row;
}

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

// What summary.json says and the rows do not. Null there is a figure that it does not give.
bool differs(const json& stored, const ordered_json& computed) {
  if (!stored.is_number()) return false;
  constexpr double kTolerance = 1e-6;
  return !computed.is_number() || std::abs(stored.get<double>() - computed.get<double>()) >
                                      kTolerance * std::max(1.0, std::abs(stored.get<double>()));
}

std::string difference_text(const std::string& label, const std::string& key, const json& stored,
                            const ordered_json& computed) {
  return fmt::format("{} of {} is {} there and {} by its runs", key, label, stored.dump(),
                     computed.dump());
}

}  // namespace

std::vector<MethodSummary> summarize(const Comparison& comparison) {
  std::vector<MethodSummary> rows;
  std::vector<const Run*> baseline;
  for (const MethodRuns& method : comparison.methods) {
    rows.push_back(summarize_method(method));
    if (method.label == comparison.baseline) baseline = finished_runs(method);
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].label == comparison.baseline) continue;
    const Pairs pairs = pair_by_seed(finished_runs(comparison.methods[k]), baseline);
    if (pairs.treated.empty()) continue;
    rows[k].difference = accuracy_difference(pairs);
    rows[k].time_saved = time_saved(pairs);
  }
  return rows;
}

ordered_json to_json(const MethodSummary& summary) {
  ordered_json difference;
  if (summary.difference) {
    difference = {{"num_pairs", summary.difference->num_pairs},
                  {"mean", summary.difference->mean},
                  {"low", or_null(summary.difference->low)},
                  {"high", or_null(summary.difference->high)},
                  {"supported", summary.difference->is_supported}};
  }
  return {{"method", summary.label},
          {"num_seeds", summary.num_finished},
          {"accuracy_mean", or_null(summary.accuracy_mean)},
          {"accuracy_deviation", or_null(summary.accuracy_deviation)},
          {"difference", difference},
          {"pruned_share", or_null(summary.pruned_share)},
          {"train_seconds_mean", or_null(summary.train_seconds_mean)},
          {"time_saved", or_null(summary.time_saved)},
          {"prune_overhead", or_null(summary.prune_overhead)}};
}

std::string disagreement(const json& summary_rows, const std::vector<MethodSummary>& rows) {
  constexpr std::array kFigures = {"num_seeds",     "accuracy_mean",      "accuracy_deviation",
                                   "pruned_share",  "train_seconds_mean", "time_saved",
                                   "prune_overhead"};
  constexpr std::array kDifferences = {"mean", "low", "high"};
  for (const json& stored : summary_rows) {
    if (!stored.is_object()) return "a row is not an object";
    const json label = stored.value("method", json());
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const MethodSummary& one) { return label == one.label; });
    if (row == rows.end()) return fmt::format("it has a row for {}", label.dump());
    const ordered_json computed = to_json(*row);
    for (const char* key : kFigures) {
      const json value = stored.value(key, json());
      if (differs(value, computed[key])) {
        return difference_text(row->label, key, value, computed[key]);
      }
    }
    const json difference = stored.value("difference", json());
    if (!difference.is_object()) continue;
    for (const char* key : kDifferences) {
      const json value = difference.value(key, json());
      const ordered_json own = row->difference ? computed["difference"][key] : ordered_json();
      if (differs(value, own)) {
        return difference_text(row->label, fmt::format("difference.{}", key), value, own);
      }
    }
  }
  return {};
}

}  // namespace tamis::program
