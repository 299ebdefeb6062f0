#include "program/report/data.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "program/analyze/advice.h"
#include "program/analyze/recorded_visits.h"
#include "program/analyze/suspect_list.h"
#include "program/report/analysis_check.h"
#include "program/report/comparison.h"
#include "program/report/verdict.h"
#include "runs/gallery.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kTitlePlace = "{{tamis-title}}";
constexpr std::string_view kDataPlace = "{{tamis-data}}";

using runs::EpochMetrics;
using runs::RunData;

template <typename Value>
ordered_json column(const RunData& run, Value value) {
  ordered_json values = ordered_json::array();
  for (const EpochMetrics& epoch : run.epochs) values.push_back(value(epoch));
  return values;
}

ordered_json epochs_json(const RunData& run) {
  ordered_json values = ordered_json::object();
  for (const runs::Metric& metric : run.metrics) {
    values[metric.name] =
        column(run, [&](const EpochMetrics& epoch) { return epoch.value(metric); });
  }
  return {{"samples", column(run, [](const auto& epoch) { return epoch.samples; })},
          {"pruned", column(run, [](const auto& epoch) { return epoch.pruned; })},
          {"steps", column(run, [](const auto& epoch) { return epoch.steps; })},
          {"learning_rate",
           column(run, [](const auto& epoch) { return epoch.learning_rate.value_or(NAN); })},
          {"train_seconds", column(run, [](const auto& epoch) { return epoch.train_seconds; })},
          {"prune_seconds", column(run, [](const auto& epoch) { return epoch.prune_seconds; })},
          {"test_seconds", column(run, [](const auto& epoch) { return epoch.test_seconds; })},
          {"values", values}};
}

// analysis.json; null if there is none.
ordered_json analysis_json(const RunData& run) {
  const std::filesystem::path path = run.folder / "analysis.json";
  if (!std::filesystem::exists(path)) return nullptr;
  ordered_json analysis = runs::read_json(path);
  runs::require_format(analysis, "tamis-analysis", 1, path.native());
  check_analysis(analysis, path.native());
  return analysis;
}

// The hardest samples of a recorded run; null if it has no recording, or one that cannot tell.
ordered_json suspects_json(const RunData& run) {
  constexpr std::size_t kShown = 24;
  if (!Recording::exists(run.folder)) return nullptr;
  const Recording recording(run.folder);
  const std::optional<Spec> score = best_score(recording);
  if (!score) return nullptr;
  SuspectList suspects = suspects_of_recording(recording, *score, kShown);
  const auto who = runs::read_samples(run.folder, recording.num_samples());
  if (who) suspects.who = *who;
  return to_json(suspects);
}

// What tamis advise says of a recorded run; null if its recording has no losses to judge scores by.
ordered_json advice_json(const RunData& run) {
  if (!Recording::exists(run.folder)) return nullptr;
  const Recording recording(run.folder);
  if (!best_score(recording) || !has_finite_loss(recording)) return nullptr;
  return to_json(advise(run.folder));
}

// One entry per epoch, null where nothing was scored; null if that is all of them.
ordered_json histograms_json(const RunData& run) {
  ordered_json histograms = ordered_json::array();
  bool is_scored = false;
  for (const EpochMetrics& epoch : run.epochs) {
    if (!epoch.scores) {
      histograms.push_back(nullptr);
      continue;
    }
    is_scored = true;
    histograms.push_back({{"low", epoch.scores->low},
                          {"high", epoch.scores->high},
                          {"counts", epoch.scores->counts}});
  }
  return is_scored ? histograms : ordered_json();
}

ordered_json run_json(const RunData& run, const std::string& label, ordered_json gallery) {
  return {{"method", label},
          {"name", run.name},
          {"folder", run.folder.lexically_normal().native()},
          {"seed", run.seed},
          {"num_train", run.num_train},
          {"num_epochs", run.num_epochs},
          {"finished", run.is_finished()},
          {"epochs", epochs_json(run)},
          {"score_histograms", histograms_json(run)},
          {"analysis", analysis_json(run)},
          {"suspects", suspects_json(run)},
          {"advice", advice_json(run)},
          {"gallery", std::move(gallery)},
          {"config", run.config}};
}

ordered_json setting_json(const Setting& setting) {
  if (setting.is_common()) return {{"key", setting.key}, {"value", setting.values.front().second}};
  ordered_json values = ordered_json::object();
  for (const auto& [label, value] : setting.values) values[label] = value;
  return {{"key", setting.key}, {"values", values}};
}

// All metrics of the runs, the headline first.
ordered_json metrics_json(const ReportComparison& comparison) {
  std::vector<runs::Metric> metrics = {comparison.summary.metric};
  for (const runs::MethodRuns& method : comparison.table.methods) {
    for (const RunData& run : method.runs) {
      for (const runs::Metric& metric : run.metrics) {
        if (std::none_of(metrics.begin(), metrics.end(),
                         [&](const auto& known) { return known.name == metric.name; })) {
          metrics.push_back(metric);
        }
      }
    }
  }
  ordered_json all = ordered_json::array();
  for (const runs::Metric& metric : metrics) all.push_back(runs::to_json(metric));
  return all;
}

ordered_json comparison_json(const ReportComparison& comparison) {
  const std::vector<Setting> settings = settings_of(comparison.table);
  ordered_json rows = ordered_json::array();
  for (const runs::SummaryRow& row : comparison.summary.rows) rows.push_back(runs::to_json(row));
  ordered_json all_settings = ordered_json::array();
  for (const Setting& setting : settings) all_settings.push_back(setting_json(setting));
  ordered_json all_runs = ordered_json::array();
  for (const runs::MethodRuns& method : comparison.table.methods) {
    // One seed's pictures are as good as another's, and the page stays small.
    bool has_gallery = false;
    for (const RunData& run : method.runs) {
      ordered_json gallery;
      if (!has_gallery) gallery = runs::read_gallery(run.folder, run.num_train);
      has_gallery = has_gallery || !gallery.is_null();
      all_runs.push_back(run_json(run, method.label, std::move(gallery)));
    }
  }
  const std::string& baseline = comparison.summary.baseline;
  return {{"name", comparison.name},
          {"metrics", metrics_json(comparison)},
          {"baseline", baseline.empty() ? ordered_json() : ordered_json(baseline)},
          {"confidence", comparison.summary.confidence},
          {"reach", comparison.summary.reach_value ? ordered_json(*comparison.summary.reach_value)
                                                   : ordered_json()},
          {"time_saved_of",
           comparison.summary.has_processor_time ? "processor_seconds" : "train_seconds"},
          {"verdict", verdict(comparison)},
          {"cautions", cautions(comparison, settings)},
          {"rows", rows},
          {"settings", all_settings},
          {"sweep", comparison.sweep},
          {"runs", all_runs}};
}

std::string default_title(const std::vector<ReportComparison>& comparisons) {
  std::vector<std::string> names;
  for (const ReportComparison& comparison : comparisons) {
    if (std::find(names.begin(), names.end(), comparison.name) == names.end()) {
      names.push_back(comparison.name);
    }
  }
  if (names.size() == 1) return fmt::format("Data pruning on {}", names.front());
  return fmt::format("Data pruning on {} tasks", names.size());
}

// "2024-03-01T12:00:00Z".
std::string now_utc() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// JSON that cannot end the script element it stands in: a name may contain "</script>" or "<!--".
std::string script_json(const ordered_json& document) {
  const std::string text = document.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

ordered_json report_document(const std::vector<std::string>& folders, const std::string& title) {
  const std::vector<ReportComparison> comparisons = read_comparisons(folders);
  ordered_json all = ordered_json::array();
  for (const ReportComparison& comparison : comparisons) all.push_back(comparison_json(comparison));
  return {{"format", "tamis-report"},
          {"format_version", 2},
          {"title", title.empty() ? default_title(comparisons) : title},
          {"created", now_utc()},
          {"tamis", TAMIS_VERSION},
          {"comparisons", all}};
}

std::string report_page(std::string_view page_template, const ordered_json& document) {
  const std::size_t title = page_template.find(kTitlePlace);
  const std::size_t data = page_template.find(kDataPlace);
  if (title == std::string_view::npos || data == std::string_view::npos || data < title) {
    throw std::logic_error(
        "the report's template must have a place for the title, then one for data");
  }
  const std::size_t after_title = title + kTitlePlace.size();
  std::string page(page_template.substr(0, title));
  page += escape_html(document["title"].get<std::string>());
  page += page_template.substr(after_title, data - after_title);
  page += script_json(document);
  page += page_template.substr(data + kDataPlace.size());
  return page;
}

}  // namespace tamis::program
