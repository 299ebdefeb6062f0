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

void compare_with(const SummaryRow& baseline, double confidence, SummaryRow& row) {
  std::vector<double> differences;
  std::vector<double> saved;
  for (const auto& [seed, result] : row.runs) {
    const auto partner =
        std::find_if(baseline.runs.begin(), baseline.runs.end(),
                     [&key = seed](const SeedResult& other) { return other.seed == key; });
    if (partner == baseline.runs.end()) continue;
    differences.push_back(result.value - partner->result.value);
    saved.push_back(1.0 - result.train_seconds / partner->result.train_seconds);
  }
  if (differences.empty()) return;
  const analysis::Verdict verdict = analysis::judge_differences(differences, confidence);
  row.difference = {.num_pairs = differences.size(), .mean = verdict.mean};
  if (differences.size() > 1) {
    row.difference->low = verdict.low;
    row.difference->high = verdict.high;
    row.difference->is_supported = verdict.is_supported && row.difference->is_judged();
  }
  // Times of 0 compare with nothing.
  if (!std::all_of(saved.begin(), saved.end(), [](double x) { return std::isfinite(x); })) return;
  row.time_saved = analysis::mean(saved);
  if (saved.size() > 1) row.time_saved_interval = analysis::confidence_interval(saved, confidence);
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

std::string verdict_text(const Difference& difference, const Metric& metric) {
  if (!difference.is_judged()) return "not judged";
  if (!difference.is_supported) return "within noise";
  return metric.is_better(difference.mean) ? "better" : "worse";
}

std::string percent(const std::optional<double>& share, int decimals) {
  return share ? fmt::format("{:.{}f} %", 100.0 * *share, decimals) : "-";
}

std::vector<std::string> format_row(const SummaryRow& row, const Summary& summary,
                                    bool has_interval, bool utf8) {
  const MetricFormat format = summary.format();
  std::vector<std::string> cells = {row.label, row.mean ? format.number(*row.mean) : "-"};
  if (row.deviation) {
    cells.back() += fmt::format(" {} {}", utf8 ? "±" : "+-", format.number(*row.deviation));
  }
  if (has_interval) {
    const auto& d = row.difference;
    cells.push_back(!d ? "-"
                    : d->low
                        ? fmt::format("{} [{}, {}]", format.signed_number(d->mean),
                                      format.signed_number(*d->low), format.signed_number(*d->high))
                        : format.signed_number(d->mean));
    cells.push_back(d ? verdict_text(*d, summary.metric) : "-");
  }
  cells.push_back(percent(row.pruned_share, 1));
  cells.push_back(row.train_seconds_mean ? fmt::format("{:.1f} s", *row.train_seconds_mean) : "-");
  cells.push_back(percent(row.time_saved, 1));
  cells.push_back(percent(row.prune_overhead, 3));
  return cells;
}

std::string explain(const Summary& summary, std::size_t num_seeds, bool utf8) {
  const std::string title = summary.metric.title();
  const char* const better =
      summary.metric.direction == Direction::higher ? "higher is better" : "lower is better";
  if (num_seeds < 2) {
    return fmt::format(
        "\nOne seed. {}: after the last epoch, {}. There is no interval, and no difference can be "
        "told from\nchance. Use at least {} seeds to compare.\n",
        title, better, kLeastSeeds);
  }
  std::string text = fmt::format(
      "\n{} seeds. {}: after the last epoch, {}; mean {} sample deviation.\n"
      "difference: {}paired by seed, with its {:.0f} % interval (Student). ",
      num_seeds, title, better, utf8 ? "±" : "+-",
      summary.metric.is_fraction() ? "in points, " : "", 100.0 * summary.confidence);
  text +=
      num_seeds < kLeastSeeds
          ? fmt::format("not judged: that takes at least {} seeds.\n", kLeastSeeds)
          : "within noise: the interval\nincludes 0, so these seeds show no difference; they do "
            "not prove that there is none.\n";
  return text;
}

// 1234567 as 1,234,567.
std::string with_commas(double number) {
  std::string text = fmt::format("{:.0f}", number);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

}  // namespace

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
                  .rows = {}};
  for (const MethodRuns& method : table.methods) summary.rows.push_back(summarize_method(method));
  const auto baseline =
      std::find_if(summary.rows.begin(), summary.rows.end(),
                   [&](const SummaryRow& row) { return row.label == table.baseline; });
  if (baseline == summary.rows.end()) return summary;
  for (SummaryRow& row : summary.rows) {
    if (&row != &*baseline) compare_with(*baseline, confidence, row);
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
  }
  return json;
}

Json to_json(const Summary& summary) {
  Json rows = Json::array();
  for (const SummaryRow& row : summary.rows) rows.push_back(to_json(row));
  return {{"metric", to_json(summary.metric)},
          {"rows", rows},
          {"baseline", summary.baseline},
          {"confidence", summary.confidence}};
}

std::string format_summary(const Summary& summary, bool utf8) {
  std::size_t num_seeds = 0;
  for (const SummaryRow& row : summary.rows) num_seeds = std::max(num_seeds, row.runs.size());
  const bool has_interval = num_seeds > 1;
  const std::string unit = summary.format().unit();
  std::vector<std::string> header = {
      "method", fmt::format("{}{}{}", summary.metric.title(), unit.empty() ? "" : " ", unit)};
  if (has_interval) {
    header.push_back(fmt::format("difference to {}", summary.baseline));
    header.emplace_back("verdict");
  }
  for (const char* const name : {"pruned", "time", "saved", "overhead"}) header.emplace_back(name);
  std::vector<std::vector<std::string>> rows = {header};
  for (const SummaryRow& row : summary.rows) {
    rows.push_back(format_row(row, summary, has_interval, utf8));
  }
  return format_columns(rows) + explain(summary, num_seeds, utf8) +
         fmt::format(
             "time: training without evaluation. saved: against {}, paired by seed. overhead: "
             "share of the time\nspent on pruning itself.\n",
             summary.baseline);
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(std::max(seconds, 0.0)));
  const std::uint64_t minutes = whole / 60;
  if (minutes == 0) return fmt::format("{} s", whole);
  if (minutes < 60) return fmt::format("{}:{:02} min", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", minutes / 60, minutes % 60, whole % 60);
}

std::string format_speed(std::uint64_t samples, double seconds) {
  return fmt::format("{} samples/s",
                     seconds > 0.0 ? with_commas(static_cast<double>(samples) / seconds) : "-");
}

std::string format_epoch(const EpochMetrics& epoch, const std::vector<Metric>& metrics,
                         std::uint64_t num_epochs) {
  std::string text = fmt::format("epoch {}/{}", epoch.epoch + 1, num_epochs);
  for (const Metric& metric : metrics) {
    const double value = epoch.value(metric);
    if (std::isfinite(value)) {
      text += fmt::format("  {} {}", metric.title(), MetricFormat(metric, value).value(value));
    }
  }
  const auto total = static_cast<double>(epoch.samples + epoch.pruned);
  return fmt::format("{}  pruned {:.1f} %  {}  {:.1f} s", text,
                     100.0 * static_cast<double>(epoch.pruned) / total,
                     format_speed(epoch.samples, epoch.train_seconds), epoch.train_seconds);
}

}  // namespace tamis::runs
