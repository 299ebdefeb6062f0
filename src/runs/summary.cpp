#include "runs/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runs/equal_budget.h"
#include "runs/reach.h"

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
  row.score_seconds_mean = analysis::mean(collect(row.runs, &RunResult::score_seconds));
  row.num_disturbed = static_cast<std::size_t>(
      std::count_if(row.runs.begin(), row.runs.end(),
                    [](const SeedResult& run) { return run.result.is_disturbed(); }));
  if (*row.train_seconds_mean > 0.0) {
    row.prune_overhead =
        analysis::mean(collect(row.runs, &RunResult::prune_seconds)) / *row.train_seconds_mean;
  }
  return row;
}

// Calls use(own, other) for every seed that both rows have.
template <typename Use>
void for_each_pair(const SummaryRow& row, const SummaryRow& other, Use use) {
  for (const SeedResult& own : row.runs) {
    const auto partner =
        std::find_if(other.runs.begin(), other.runs.end(),
                     [&](const SeedResult& candidate) { return candidate.seed == own.seed; });
    if (partner != other.runs.end()) use(own.result, partner->result);
  }
}

std::vector<double> differences_of(const SummaryRow& row, const SummaryRow& other) {
  std::vector<double> differences;
  for_each_pair(row, other, [&](const RunResult& own, const RunResult& partner) {
    differences.push_back(own.value - partner.value);
  });
  return differences;
}

// The deviation of the differences of all methods to one of them.
double pooled_deviation(const std::vector<SummaryRow>& rows, const SummaryRow& other) {
  double squares = 0.0;
  double degrees = 0.0;
  for (const SummaryRow& row : rows) {
    const std::vector<double> differences = differences_of(row, other);
    if (&row == &other || differences.size() < 2) continue;
    const auto n = static_cast<double>(differences.size() - 1);
    squares += n * std::pow(analysis::standard_deviation(differences), 2);
    degrees += n;
  }
  return degrees > 0.0 ? std::sqrt(squares / degrees) : 0.0;
}

// Seeds that agree by chance, or because the metric has coarse steps, must not make an interval
// vanish.
double least_deviation(const SummaryRow& row, const SummaryRow& other, double pooled) {
  constexpr double kOfPooled = 0.25;
  constexpr double kOfUnpaired = 0.02;
  return std::max(kOfPooled * pooled, kOfUnpaired * std::hypot(row.deviation.value_or(0.0),
                                                               other.deviation.value_or(0.0)));
}

void compare_with(const SummaryRow& baseline, const Summary& summary, SummaryRow& row) {
  row.difference = paired_difference(summary, row, baseline);
  if (!row.difference) return;
  std::vector<double> saved;
  for_each_pair(row, baseline, [&](const RunResult& own, const RunResult& other) {
    saved.push_back(summary.has_processor_time
                        ? 1.0 - *own.processor_seconds / *other.processor_seconds
                        : 1.0 - own.train_seconds / other.train_seconds);
  });
  // Times of 0 compare with nothing.
  if (!std::all_of(saved.begin(), saved.end(), [](double x) { return std::isfinite(x); })) return;
  row.time_saved = analysis::mean(saved);
  if (saved.size() > 1) {
    row.time_saved_interval = analysis::confidence_interval(saved, summary.confidence);
  }
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

Json to_json(const Difference& difference) {
  return {{"num_pairs", difference.num_pairs},
          {"mean", difference.mean},
          {"low", or_null(difference.low)},
          {"high", or_null(difference.high)},
          {"supported", difference.is_supported}};
}

}  // namespace

std::optional<Difference> paired_difference(const Summary& summary, const SummaryRow& row,
                                            const SummaryRow& other) {
  const std::vector<double> differences = differences_of(row, other);
  if (differences.empty()) return std::nullopt;
  const double least = least_deviation(row, other, pooled_deviation(summary.rows, other));
  const analysis::Verdict verdict =
      analysis::judge_differences(differences, summary.confidence, least);
  Difference difference{.num_pairs = differences.size(), .mean = verdict.mean};
  if (differences.size() > 1 && verdict.low < verdict.high) {
    difference.low = verdict.low;
    difference.high = verdict.high;
    difference.is_supported = verdict.is_supported && difference.is_judged();
  }
  return difference;
}

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
  std::vector<bool> is_budget_row;
  for (const MethodRuns& method : table.methods) {
    summary.rows.push_back(summarize_method(method));
    for (const SeedResult& run : summary.rows.back().runs) {
      summary.has_processor_time &= run.result.processor_seconds.has_value();
    }
    is_budget_row.push_back(!method.runs.empty() && is_budget_baseline(method.runs.front()));
  }
  compare_budgets(is_budget_row, summary);
  if (table.reach) compare_reach(table, *table.reach, summary);
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
  if (row.difference) json["difference"] = to_json(*row.difference);
  if (row.score_seconds_mean > 0.0) json["score_seconds_mean"] = row.score_seconds_mean;
  if (row.num_disturbed > 0) json["num_disturbed"] = row.num_disturbed;
  if (row.is_budget_baseline) json["is_budget_baseline"] = true;
  for (const auto& [label, difference] : row.equal_budget) {
    json["equal_budget"].push_back({{"baseline", label}, {"difference", to_json(difference)}});
  }
  if (const auto& reach = row.reach) {
    json["reach"] = {{"num_reached", reach->num_reached},
                     {"seconds", or_null(reach->seconds)},
                     {"share_of_baseline", or_null(reach->share_of_baseline)}};
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
    if (result.processor_share) json["runs"].back()["processor_share"] = *result.processor_share;
    if (result.score_seconds > 0.0) json["runs"].back()["score_seconds"] = result.score_seconds;
    if (result.processor_seconds) {
      json["runs"].back()["processor_seconds"] = *result.processor_seconds;
    }
  }
  return json;
}

Json to_json(const Summary& summary) {
  Json rows = Json::array();
  for (const SummaryRow& row : summary.rows) rows.push_back(to_json(row));
  Json json = {
      {"metric", to_json(summary.metric)},
      {"rows", rows},
      {"baseline", summary.baseline},
      {"confidence", summary.confidence},
      {"time_saved_of", summary.has_processor_time ? "processor_seconds" : "train_seconds"}};
  if (summary.reach_value) json["reach"] = *summary.reach_value;
  return json;
}

}  // namespace tamis::runs
