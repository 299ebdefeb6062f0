#include "runs/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tamis::runs {

namespace {

std::vector<double> collect(const std::vector<SeedResult>& runs, double RunResult::*member) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const SeedResult& run : runs) values.push_back(run.result.*member);
  return values;
}

SummaryRow summarize_method(const MethodRuns& method) {
  SummaryRow row{.label = method.label};
  for (const RunData& run : method.runs) {
    if (run.is_finished()) row.runs.push_back({run.seed, summarize_run(run)});
  }
  if (row.runs.empty()) return row;
  std::sort(row.runs.begin(), row.runs.end(),
            [](const SeedResult& a, const SeedResult& b) { return a.seed < b.seed; });
  const std::vector<double> values = collect(row.runs, &RunResult::value);
  row.mean = analysis::mean(values);
  if (values.size() > 1) row.deviation = analysis::standard_deviation(values);
  row.pruned_share = analysis::mean(collect(row.runs, &RunResult::pruned_share));
  row.train_seconds_mean = analysis::mean(collect(row.runs, &RunResult::train_seconds));
  if (*row.train_seconds_mean > 0.0) {
    row.prune_overhead =
        analysis::mean(collect(row.runs, &RunResult::prune_seconds)) / *row.train_seconds_mean;
  }
  return row;
}

// The part of the deviation of a difference that pairing by seed is not trusted to remove.
double least_deviation(const SummaryRow& a, const SummaryRow& b) {
  return 0.5 * std::hypot(a.deviation.value_or(0.0), b.deviation.value_or(0.0));
}

void compare_with(const SummaryRow& baseline, const Summary& summary, SummaryRow& row) {
  std::vector<double> differences;
  std::vector<double> saved;
  for (const auto& [seed, result] : row.runs) {
    const auto partner =
        std::find_if(baseline.runs.begin(), baseline.runs.end(),
                     [&key = seed](const SeedResult& other) { return other.seed == key; });
    if (partner == baseline.runs.end()) continue;
    differences.push_back(result.value - partner->result.value);
    saved.push_back(summary.has_processor_time
                        ? 1.0 - *result.processor_seconds / *partner->result.processor_seconds
                        : 1.0 - result.train_seconds / partner->result.train_seconds);
  }
  if (differences.empty()) return;
  const analysis::Verdict verdict =
      analysis::judge_differences(differences, summary.confidence, least_deviation(row, baseline));
  row.difference = {.num_pairs = differences.size(), .mean = verdict.mean};
  if (differences.size() > 1 && verdict.low < verdict.high) {
    row.difference->low = verdict.low;
    row.difference->high = verdict.high;
    row.difference->is_supported = verdict.is_supported && row.difference->is_judged();
  }
  // Times of 0 compare with nothing.
  if (!std::all_of(saved.begin(), saved.end(), [](double x) { return std::isfinite(x); })) return;
  row.time_saved = analysis::mean(saved);
  if (saved.size() > 1)
    row.time_saved_interval = analysis::confidence_interval(saved, summary.confidence);
}

const Metric& common_headline(const RunTable& table) {
  const RunData* first = nullptr;
  for (const MethodRuns& method : table.methods) {
    for (const RunData& run : method.runs) {
      if (first == nullptr) first = &run;
      if (run.headline() == first->headline()) continue;
      throw std::runtime_error(fmt::format(
          "{} and {}: runs are compared by one headline metric with one unit and direction, got {} "
          "and {}",
          first->folder.native(), run.folder.native(), to_json(first->headline()).dump(),
          to_json(run.headline()).dump()));
    }
  }
  if (first == nullptr) throw std::runtime_error("there is no run to summarize");
  return first->headline();
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

bool SummaryRow::saves_more_than_pruned() const {
  constexpr double kRounding = 0.01;
  return time_saved && pruned_share && *time_saved > *pruned_share + kRounding;
}

MetricFormat Summary::format() const {
  for (const SummaryRow& row : rows) {
    if (row.mean) return {metric, *row.mean};
  }
  return {metric, 1.0};
}

Summary summarize(const RunTable& table, double confidence) {
  Summary summary{.metric = common_headline(table),
                  .baseline = table.baseline,
                  .confidence = confidence,
                  .has_processor_time = true,
                  .rows = {}};
  for (const MethodRuns& method : table.methods) {
    summary.rows.push_back(summarize_method(method));
    for (const SeedResult& run : summary.rows.back().runs) {
      summary.has_processor_time &= run.result.processor_seconds.has_value();
    }
  }
  const auto baseline =
      std::find_if(summary.rows.begin(), summary.rows.end(),
                   [&](const SummaryRow& row) { return row.label == table.baseline; });
  if (baseline == summary.rows.end()) return summary;
  for (SummaryRow& row : summary.rows) {
    if (&row != &*baseline) compare_with(*baseline, summary, row);
  }
  return summary;
}

Json to_json(const SummaryRow& row) {
  Json json = {{"method", row.label},
               {"num_seeds", row.runs.size()},
               {"mean", or_null(row.mean)},
               {"deviation", or_null(row.deviation)},
               {"difference", nullptr},
               {"pruned_share", or_null(row.pruned_share)},
               {"train_seconds_mean", or_null(row.train_seconds_mean)},
               {"time_saved", or_null(row.time_saved)},
               {"more_saved_than_pruned", row.saves_more_than_pruned()},
               {"prune_overhead", or_null(row.prune_overhead)}};
  if (const auto& d = row.difference) {
    json["difference"] = {{"num_pairs", d->num_pairs},
                          {"mean", d->mean},
                          {"low", or_null(d->low)},
                          {"high", or_null(d->high)},
                          {"supported", d->is_supported}};
  }
  if (const auto& saved = row.time_saved_interval) {
    json["time_saved_interval"] = {{"low", saved->low}, {"high", saved->high}};
  }
  json["runs"] = Json::array();
  for (const auto& [seed, result] : row.runs) {
    json["runs"].push_back({{"seed", seed},
                            {"value", result.value},
                            {"pruned_share", result.pruned_share},
                            {"train_seconds", result.train_seconds},
                            {"prune_seconds", result.prune_seconds}});
    if (result.processor_seconds) {
      json["runs"].back()["processor_seconds"] = *result.processor_seconds;
    }
  }
  return json;
}

Json to_json(const Summary& summary) {
  Json rows = Json::array();
  for (const SummaryRow& row : summary.rows) rows.push_back(to_json(row));
  return {{"metric", to_json(summary.metric)},
          {"rows", rows},
          {"baseline", summary.baseline},
          {"confidence", summary.confidence},
          {"time_saved_of", summary.has_processor_time ? "processor_seconds" : "train_seconds"}};
}

}  // namespace tamis::runs
