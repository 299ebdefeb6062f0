// What a summary, an epoch and a time look like as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

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

std::string difference_text(const Difference& difference, const MetricFormat& format) {
  const std::string mean = format.signed_number(difference.mean);
  if (!difference.low) return mean;
  return fmt::format("{} [{}, {}]", mean, format.signed_number(*difference.low),
                     format.signed_number(*difference.high));
}

std::string percent(const std::optional<double>& share, int decimals) {
  return share ? fmt::format("{:.{}f} %", 100.0 * *share, decimals) : "-";
}

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.1f} s", *seconds) : "-";
}

// Which time a summary compares.
const char* time_name(const Summary& summary) {
  return summary.has_processor_time ? "processor's time" : "time";
}

// "61.3 %" of the baseline's time, "never", "50.0 % (2 of 3 seeds)": when a value is reached.
std::string reach_text(const SummaryRow& row, const std::string& baseline) {
  if (!row.reach) return "-";
  if (row.reach->num_reached == 0) return "never";
  const std::string few =
      row.reach->num_reached < row.runs.size()
          ? fmt::format(" ({} of {} seeds)", row.reach->num_reached, row.runs.size())
          : "";
  const bool is_share = row.label != baseline && row.reach->share_of_baseline;
  return (is_share ? percent(row.reach->share_of_baseline, 1) : seconds_text(row.reach->seconds)) +
         few;
}

bool any_row(const Summary& summary, bool (*holds)(const SummaryRow&)) {
  return std::any_of(summary.rows.begin(), summary.rows.end(), holds);
}

bool has_budget(const SummaryRow& row) { return !row.equal_budget.empty(); }
bool has_scoring(const SummaryRow& row) { return row.score_seconds_mean > 0.0; }
bool has_disturbed(const SummaryRow& row) { return row.num_disturbed > 0; }

struct Column {
  std::string title;
  std::function<std::string(const SummaryRow&)> cell;
  // The columns with the highest number are the first to go where there is no room.
  int rank = 0;
};

std::vector<Column> columns_of(const Summary& summary, bool has_interval, bool utf8) {
  const MetricFormat format = summary.format();
  const std::string& unit = format.unit();
  std::vector<Column> columns = {
      {"method", [](const SummaryRow& row) { return row.label; }},
      {fmt::format("{}{}{}", summary.metric.title(), unit.empty() ? "" : " ", unit),
       [format, utf8](const SummaryRow& row) {
         if (!row.mean) return std::string("-");
         if (!row.deviation) return format.number(*row.mean);
         return fmt::format("{} {} {}", format.number(*row.mean), utf8 ? "±" : "+-",
                            format.number(*row.deviation));
       }}};
  if (has_interval) {
    columns.push_back(
        {fmt::format("difference to {}", summary.baseline), [format](const SummaryRow& row) {
           return row.difference ? difference_text(*row.difference, format) : "-";
         }});
    columns.push_back({"verdict",
                       [metric = summary.metric](const SummaryRow& row) {
                         return row.difference ? verdict_text(*row.difference, metric) : "-";
                       },
                       1});
  }
  if (any_row(summary, has_budget)) {
    columns.push_back({"beats equal budget", [metric = summary.metric](const SummaryRow& row) {
                         return budget_text(row, metric);
                       }});
  }
  columns.push_back({"pruned", [](const SummaryRow& row) { return percent(row.pruned_share, 1); }});
  columns.push_back({"time",
                     [](const SummaryRow& row) {
                       return seconds_text(row.train_seconds_mean) +
                              (has_disturbed(row) ? "!" : "");
                     },
                     2});
  if (any_row(summary, has_scoring)) {
    columns.push_back({"scoring",
                       [](const SummaryRow& row) {
                         return has_scoring(row) ? seconds_text(row.score_seconds_mean) : "-";
                       },
                       2});
  }
  columns.push_back({"saved", [](const SummaryRow& row) {
                       return percent(row.time_saved, 1) +
                              (row.saves_more_than_pruned() ? "*" : "");
                     }});
  if (summary.reach_value) {
    columns.push_back({fmt::format("to {}", format.value(*summary.reach_value)),
                       [baseline = summary.baseline](const SummaryRow& row) {
                         return reach_text(row, baseline);
                       }});
  }
  columns.push_back(
      {"overhead", [](const SummaryRow& row) { return percent(row.prune_overhead, 3); }, 3});
  return columns;
}

// With `breaks_titles`, titles that are wider than the cells below them take two lines.
std::string format_table(const std::vector<Column>& columns, const std::vector<SummaryRow>& rows,
                         bool breaks_titles) {
  std::vector<std::vector<std::string>> cells(2);
  for (const Column& column : columns) {
    cells[0].emplace_back();
    cells[1].push_back(column.title);
  }
  for (const SummaryRow& row : rows) {
    auto& line = cells.emplace_back();
    for (const Column& column : columns) line.push_back(column.cell(row));
  }
  for (std::size_t k = 0; k < columns.size(); ++k) {
    std::size_t widest = 0;
    for (std::size_t r = 2; r < cells.size(); ++r) widest = std::max(widest, width_of(cells[r][k]));
    const std::size_t space = columns[k].title.find(' ');
    if (!breaks_titles || space == std::string::npos || width_of(columns[k].title) <= widest) {
      continue;
    }
    cells[0][k] = columns[k].title.substr(0, space);
    cells[1][k] = columns[k].title.substr(space + 1);
  }
  std::erase_if(cells, [](const auto& line) {
    return std::all_of(line.begin(), line.end(), [](const auto& cell) { return cell.empty(); });
  });
  return format_columns(cells);
}

std::size_t width_of_lines(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    widest = std::max(widest, width_of(text.substr(begin, end - begin)));
  }
  return widest;
}

// Without as many columns as it takes; `left_out` gets their titles.
std::string fit_table(std::vector<Column> columns, const std::vector<SummaryRow>& rows,
                      std::size_t width, std::vector<std::string>& left_out) {
  std::string text = format_table(columns, rows, false);
  while (width > 0 && width_of_lines(text) > width) {
    text = format_table(columns, rows, true);
    const auto last =
        std::max_element(columns.begin(), columns.end(),
                         [](const Column& a, const Column& b) { return a.rank < b.rank; });
    if (width_of_lines(text) <= width || last->rank == 0) break;
    left_out.push_back(last->title);
    columns.erase(last);
  }
  return text;
}

// Lines of at most `width` columns, broken at spaces; longer words have a line of their own.
std::string wrap(const std::string& text, std::size_t width) {
  std::string lines;
  std::size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool fits = column + 1 + width_of(word) <= width;
    if (column > 0) lines += fits ? ' ' : '\n';
    column = (column > 0 && fits ? column + 1 : 0) + width_of(word);
    lines += word;
  }
  return lines + "\n";
}

// What the table says, a line for each.
std::vector<std::string> explain(const Summary& summary, std::size_t num_seeds, bool utf8) {
  const std::string title = summary.metric.title();
  const char* const better =
      summary.metric.direction == Direction::higher ? "higher is better" : "lower is better";
  std::vector<std::string> notes;
  if (num_seeds < 2) {
    notes.push_back(fmt::format("One seed. {}: after the last epoch, {}.", title, better));
    notes.push_back(fmt::format(
        "There is no interval, and no difference can be told from chance. Use at least {} seeds to "
        "compare.",
        kLeastSeeds));
  } else {
    notes.push_back(fmt::format("{} seeds. {}: after the last epoch, {}; mean {} sample deviation.",
                                num_seeds, title, better, utf8 ? "±" : "+-"));
    notes.push_back(
        fmt::format("difference: {}paired by seed, with its {:.0f} % interval (Student).",
                    summary.metric.is_fraction() ? "in points, " : "", 100.0 * summary.confidence));
    notes.push_back(num_seeds < kLeastSeeds
                        ? fmt::format("not judged: that takes at least {} seeds.", kLeastSeeds)
                        : "within noise: the interval includes 0, so these seeds show no "
                          "difference; they do not "
                          "prove that there is none.");
  }
  notes.emplace_back(
      "time: training without evaluation. overhead: share of it spent on pruning itself.");
  notes.push_back(fmt::format("saved: of the {}, against {}, paired by seed.", time_name(summary),
                              summary.baseline));
  if (std::any_of(summary.rows.begin(), summary.rows.end(),
                  [](const SummaryRow& row) { return row.saves_more_than_pruned(); })) {
    notes.push_back(fmt::format(
        "*: more than was pruned, which pruning cannot do: something else slowed {} down; repeat "
        "the comparison while the machine is quiet.",
        summary.baseline));
  }
  return notes;
}

// What the columns and marks mean that only some tables have.
void explain_more(const Summary& summary, std::vector<std::string>& notes) {
  if (any_row(summary, has_budget)) {
    notes.emplace_back(
        "beats equal budget: better than every row that only trains on fewer samples "
        "(fewer-epochs, random-dynamic) and used no more of them; no: the interval of a difference "
        "includes 0, or is below.");
  }
  if (any_row(summary, has_scoring)) {
    notes.emplace_back("scoring: part of the time, spent before the subset was chosen.");
  }
  if (summary.reach_value) {
    notes.push_back(fmt::format(
        "to {}: {} until the end of the first epoch that reaches it, as a share of {}'s.",
        summary.format().value(*summary.reach_value), time_name(summary), summary.baseline));
  }
  if (any_row(summary, has_disturbed)) {
    notes.push_back(fmt::format(
        "!: a run got less than {:.0f} % of the processor, so its time by the clock says little; "
        "--repeat-disturbed makes it again.",
        100.0 * kLeastProcessorShare));
  }
}

// 1234567 as 1,234,567.
std::string with_commas(double number) {
  std::string text = fmt::format("{:.0f}", number);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

}  // namespace

std::string format_summary(const Summary& summary, bool utf8, std::size_t width) {
  std::size_t num_seeds = 0;
  for (const SummaryRow& row : summary.rows) num_seeds = std::max(num_seeds, row.runs.size());
  std::vector<std::string> left_out;
  std::string text =
      fit_table(columns_of(summary, num_seeds > 1, utf8), summary.rows, width, left_out) + "\n";
  std::vector<std::string> notes = explain(summary, num_seeds, utf8);
  explain_more(summary, notes);
  if (!left_out.empty()) {
    notes.push_back(fmt::format("Left out for want of columns: {}; summary.json has them.",
                                fmt::join(left_out, ", ")));
  }
  constexpr std::size_t kWidthOfNotes = 100;
  for (const std::string& note : notes) {
    text += wrap(note, width == 0 ? kWidthOfNotes : std::min(width, kWidthOfNotes));
  }
  return text;
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
