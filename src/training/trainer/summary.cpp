#include "training/trainer/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "base/check.h"

namespace tamis::training {

namespace {

std::vector<double> collect(std::span<const RunResult> runs,
                            const std::function<double(const RunResult&)>& value) {
  std::vector<double> values(runs.size());
  std::transform(runs.begin(), runs.end(), values.begin(), value);
  return values;
}

SummaryRow summarize_method(const MethodRuns& method) {
  const auto accuracies = collect(method.runs, [](const RunResult& r) { return r.accuracy; });
  const auto train = collect(method.runs, [](const RunResult& r) { return r.train_seconds; });
  const auto prune = collect(method.runs, [](const RunResult& r) { return r.prune_seconds; });
  const auto shares = collect(method.runs, [](const RunResult& r) { return r.pruned_share; });
  return {.method = method.method,
          .runs = method.runs,
          .accuracy_mean = analysis::mean(accuracies),
          .accuracy_deviation = analysis::standard_deviation(accuracies),
          .pruned_share = analysis::mean(shares),
          .train_seconds_mean = analysis::mean(train),
          .prune_overhead = analysis::mean(prune) / analysis::mean(train)};
}

void compare_with(const SummaryRow& baseline, double confidence, SummaryRow& row) {
  const auto accuracy = [](const RunResult& r) { return r.accuracy; };
  std::vector<double> saved(row.runs.size());
  for (std::size_t k = 0; k < saved.size(); ++k) {
    saved[k] = 1.0 - row.runs[k].train_seconds / baseline.runs[k].train_seconds;
  }
  row.time_saved = analysis::mean(saved);
  if (saved.size() < 2) return;
  row.time_saved_interval = analysis::confidence_interval(saved, confidence);
  row.difference = analysis::compare_paired(collect(row.runs, accuracy),
                                            collect(baseline.runs, accuracy), confidence);
}

// Columns of a terminal: every character but the continuation bytes of UTF-8 takes one.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

// The first column to the left, the others to the right.
std::string format_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], width_of(row[k]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::string space(widths[k] - width_of(row[k]), ' ');
      line += k == 0 ? row[k] + space : "  " + space + row[k];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string verdict_text(const analysis::Verdict& verdict) {
  if (!verdict.is_supported) return "within noise";
  return verdict.mean > 0.0 ? "higher" : "lower";
}

std::vector<std::string> format_row(const SummaryRow& row, bool has_interval, bool utf8) {
  std::vector<std::string> cells = {row.method};
  cells.push_back(has_interval ? fmt::format("{:.2f} {} {:.2f}", 100.0 * row.accuracy_mean,
                                             utf8 ? "±" : "+-", 100.0 * row.accuracy_deviation)
                               : fmt::format("{:.2f}", 100.0 * row.accuracy_mean));
  if (has_interval) {
    const auto& d = row.difference;
    cells.push_back(d ? fmt::format("{:+.2f} [{:+.2f}, {:+.2f}]", 100.0 * d->mean, 100.0 * d->low,
                                    100.0 * d->high)
                      : "-");
    cells.push_back(d ? verdict_text(*d) : "-");
  }
  cells.push_back(fmt::format("{:.1f} %", 100.0 * row.pruned_share));
  cells.push_back(fmt::format("{:.1f} s", row.train_seconds_mean));
  cells.push_back(row.time_saved ? fmt::format("{:.1f} %", 100.0 * *row.time_saved) : "-");
  cells.push_back(fmt::format("{:.3f} %", 100.0 * row.prune_overhead));
  return cells;
}

}  // namespace

RunResult summarize_run(std::span<const EpochMetrics> metrics) {
  if (metrics.empty()) throw std::invalid_argument("a run without epochs has no result");
  RunResult result{.accuracy = metrics.back().test_accuracy};
  double used = 0.0;
  double total = 0.0;
  for (const EpochMetrics& epoch : metrics) {
    used += static_cast<double>(epoch.samples);
    total += static_cast<double>(epoch.samples + epoch.pruned);
    result.train_seconds += epoch.train_seconds;
    result.prune_seconds += epoch.prune_seconds;
  }
  result.pruned_share = 1.0 - used / total;
  return result;
}

Summary summarize(const std::vector<MethodRuns>& methods, const std::vector<std::uint64_t>& seeds,
                  const std::string& baseline, double confidence) {
  Summary summary{.baseline = baseline, .seeds = seeds, .confidence = confidence, .rows = {}};
  for (const MethodRuns& method : methods) {
    detail::require(!seeds.empty() && method.runs.size() == seeds.size(), "summary",
                    "runs of " + method.method, detail::concat("one per seed (", seeds.size(), ")"),
                    method.runs.size());
    summary.rows.push_back(summarize_method(method));
  }
  const auto base = std::find_if(summary.rows.begin(), summary.rows.end(),
                                 [&](const SummaryRow& row) { return row.method == baseline; });
  detail::require(base != summary.rows.end(), "summary", "baseline", "one of the methods",
                  baseline);
  for (SummaryRow& row : summary.rows) {
    if (&row != &*base) compare_with(*base, confidence, row);
  }
  return summary;
}

Json to_json(const Summary& summary) {
  Json rows = Json::array();
  for (const SummaryRow& row : summary.rows) {
    Json json = {{"method", row.method},
                 {"num_seeds", row.runs.size()},
                 {"accuracy_mean", row.accuracy_mean},
                 {"accuracy_deviation", row.accuracy_deviation},
                 {"difference", nullptr},
                 {"pruned_share", row.pruned_share},
                 {"train_seconds_mean", row.train_seconds_mean},
                 {"time_saved", nullptr},
                 {"prune_overhead", row.prune_overhead}};
    if (const auto& d = row.difference) {
      json["difference"] = {
          {"mean", d->mean}, {"low", d->low}, {"high", d->high}, {"supported", d->is_supported}};
    }
    if (row.time_saved) json["time_saved"] = *row.time_saved;
    if (const auto& saved = row.time_saved_interval) {
      json["time_saved_interval"] = {{"low", saved->low}, {"high", saved->high}};
    }
    Json runs = Json::array();
    for (std::size_t k = 0; k < row.runs.size(); ++k) {
      runs.push_back({{"seed", summary.seeds[k]},
                      {"accuracy", row.runs[k].accuracy},
                      {"pruned_share", row.runs[k].pruned_share},
                      {"train_seconds", row.runs[k].train_seconds},
                      {"prune_seconds", row.runs[k].prune_seconds}});
    }
    json["runs"] = runs;
    rows.push_back(json);
  }
  return {{"rows", rows},
          {"baseline", summary.baseline},
          {"seeds", summary.seeds},
          {"confidence", summary.confidence}};
}

std::string format_summary(const Summary& summary, bool utf8) {
  const bool has_interval = summary.seeds.size() > 1;
  std::vector<std::string> header = {"method", "accuracy %"};
  if (has_interval) {
    header.push_back(fmt::format("difference to {}", summary.baseline));
    header.emplace_back("verdict");
  }
  for (const char* const name : {"pruned", "time", "saved", "overhead"}) header.emplace_back(name);
  std::vector<std::vector<std::string>> rows = {header};
  for (const SummaryRow& row : summary.rows) {
    rows.push_back(format_row(row, has_interval, utf8));
  }
  std::string text = format_columns(rows);
  if (has_interval) {
    text += fmt::format(
        "\n{} seeds. accuracy: test accuracy after the last epoch, mean {} sample deviation.\n"
        "difference: in points, paired by seed, with its {:.0f} % interval (Student). within "
        "noise: the interval\nincludes 0, so these seeds show no difference; they do not prove "
        "that there is none.\n",
        summary.seeds.size(), utf8 ? "±" : "+-", 100.0 * summary.confidence);
  } else {
    text +=
        "\nOne seed: there is no interval, and no difference in accuracy can be told from chance."
        "\nUse more seeds to compare.\n";
  }
  text += fmt::format(
      "time: training without evaluation. saved: against {}, paired by seed. overhead: share of "
      "the time\nspent on pruning itself.\n",
      summary.baseline);
  return text;
}

}  // namespace tamis::training
