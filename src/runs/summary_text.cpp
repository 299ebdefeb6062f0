// Summaries and epochs as people read them in a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runs/equal_budget.h"
#include "runs/summary.h"

namespace tamis::runs {

namespace {

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

// Which columns a table needs besides those that every table has.
struct Columns {
  bool difference = false;
  bool equal_budget = false;
  bool reach = false;
  bool scoring = false;
  bool disturbed = false;  // a mark, not a column

  explicit Columns(const Summary& summary) : reach(summary.reach_value.has_value()) {
    for (const SummaryRow& row : summary.rows) {
      difference = difference || row.runs.size() > 1;
      equal_budget = equal_budget || !row.equal_budget.empty();
      scoring = scoring || row.score_seconds_mean > 0.0;
      disturbed = disturbed || row.num_disturbed > 0;
    }
  }
};

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.1f} s", *seconds) : "-";
}

// "61 % of full's time", "2 of 3 seeds": when the stated value is reached.
std::string reach_text(const SummaryRow& row, const Summary& summary) {
  if (!row.reach) return "-";
  const std::string few =
      row.reach->num_reached < row.runs.size()
          ? fmt::format(" ({} of {} seeds)", row.reach->num_reached, row.runs.size())
          : "";
  if (row.reach->num_reached == 0) return "never";
  if (row.label == summary.baseline || !row.reach->share_of_baseline) {
    return seconds_text(row.reach->seconds) + few;
  }
  return percent(row.reach->share_of_baseline, 1) + few;
}

std::vector<std::string> format_row(const SummaryRow& row, const Summary& summary,
                                    const Columns& columns, bool utf8) {
  const MetricFormat format = summary.format();
  std::vector<std::string> cells = {row.label, row.mean ? format.number(*row.mean) : "-"};
  if (row.deviation) {
    cells.back() += fmt::format(" {} {}", utf8 ? "±" : "+-", format.number(*row.deviation));
  }
  if (columns.difference) {
    const auto& d = row.difference;
    cells.push_back(!d ? "-"
                    : d->low
                        ? fmt::format("{} [{}, {}]", format.signed_number(d->mean),
                                      format.signed_number(*d->low), format.signed_number(*d->high))
                        : format.signed_number(d->mean));
    cells.push_back(d ? verdict_text(*d, summary.metric) : "-");
  }
  if (columns.equal_budget) cells.push_back(budget_text(row, summary.metric));
  cells.push_back(percent(row.pruned_share, 1));
  cells.push_back(seconds_text(row.train_seconds_mean) + (row.num_disturbed > 0 ? "*" : ""));
  if (columns.scoring) {
    cells.push_back(row.score_seconds_mean > 0.0 ? seconds_text(row.score_seconds_mean) : "-");
  }
  cells.push_back(percent(row.time_saved, 1));
  if (columns.reach) cells.push_back(reach_text(row, summary));
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

// What the columns mean that only some tables have.
std::string explain_columns(const Summary& summary, const Columns& columns) {
  std::string text;
  if (columns.equal_budget) {
    text +=
        "beats equal budget: better than every row that only trains on fewer samples "
        "(fewer-epochs,\n"
        "random-dynamic) and used no more of them. no: the interval of a difference includes 0, or "
        "is below.\n";
  }
  if (columns.scoring) text += "scoring: part of the time, spent before the subset was chosen.\n";
  if (columns.reach) {
    text += fmt::format(
        "to {}: time until the end of the first epoch that reaches it, as a share of {}'s.\n",
        summary.format().value(*summary.reach_value), summary.baseline);
  }
  if (columns.disturbed) {
    text += fmt::format(
        "*: a run got less than {:.0f} % of the processor; its times say little. "
        "--repeat-disturbed makes it again.\n",
        100.0 * kLeastProcessorShare);
  }
  return text;
}

// 1234567 as 1,234,567.
std::string with_commas(double number) {
  std::string text = fmt::format("{:.0f}", number);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

}  // namespace

std::string format_summary(const Summary& summary, bool utf8) {
  std::size_t num_seeds = 0;
  for (const SummaryRow& row : summary.rows) num_seeds = std::max(num_seeds, row.runs.size());
  const Columns columns(summary);
  const std::string unit = summary.format().unit();
  std::vector<std::string> header = {
      "method", fmt::format("{}{}{}", summary.metric.title(), unit.empty() ? "" : " ", unit)};
  if (columns.difference) {
    header.push_back(fmt::format("difference to {}", summary.baseline));
    header.emplace_back("verdict");
  }
  if (columns.equal_budget) header.emplace_back("beats equal budget");
  header.insert(header.end(), {"pruned", "time"});
  if (columns.scoring) header.emplace_back("scoring");
  header.emplace_back("saved");
  if (columns.reach) {
    header.push_back(fmt::format("to {}", summary.format().value(*summary.reach_value)));
  }
  header.emplace_back("overhead");
  std::vector<std::vector<std::string>> rows = {header};
  for (const SummaryRow& row : summary.rows) {
    rows.push_back(format_row(row, summary, columns, utf8));
  }
  return format_columns(rows) + explain(summary, num_seeds, utf8) +
         fmt::format(
             "time: training without evaluation. saved: against {}, paired by seed. overhead: "
             "share of the time\nspent on pruning itself.\n",
             summary.baseline) +
         explain_columns(summary, columns);
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
