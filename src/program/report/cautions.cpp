// What a reader should know before trusting a comparison.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "program/report/verdict.h"

namespace tamis::program {

namespace {

using runs::Json;

std::string unfinished(const runs::RunTable& table) {
  std::vector<std::string> names;
  std::size_t num_runs = table.missing.size();
  for (const runs::MethodRuns& method : table.methods) {
    num_runs += method.runs.size();
    for (const runs::RunData& run : method.runs) {
      if (run.is_finished()) continue;
      names.push_back(fmt::format("{} seed {} ({} of {} epoch{})", method.label, run.seed,
                                  run.epochs.size(), run.num_epochs,
                                  run.num_epochs == 1 ? "" : "s"));
    }
  }
  for (const std::string& name : table.missing) names.push_back(name + " (not started)");
  if (names.empty()) return {};
  const std::size_t total = names.size();
  constexpr std::size_t kListed = 6;
  if (total > kListed) {
    names.resize(kListed);
    names.push_back(fmt::format("{} more", total - kListed));
  }
  return fmt::format("{} of {} runs {} not finished and {} left out of the table: {}.", total,
                     num_runs, total == 1 ? "has" : "have", total == 1 ? "is" : "are",
                     enumerate(names));
}

// Settings outside the method that differ.
std::string unequal(const std::vector<Setting>& settings) {
  std::vector<std::string> keys;
  for (const Setting& setting : settings) {
    const bool is_method = setting.key.starts_with("method.");
    const bool is_machine = setting.key.starts_with("environment.");
    // A method that trains fewer epochs says so by full_epochs.
    const bool is_budget = setting.key == "epochs" &&
                           std::any_of(settings.begin(), settings.end(), [](const Setting& one) {
                             return one.key == "method.full_epochs";
                           });
    if (!setting.is_common() && !is_method && !is_machine && !is_budget) {
      keys.push_back(setting.key);
    }
  }
  if (keys.empty()) return {};
  return fmt::format("The runs differ in more than the method: {}.", enumerate(keys));
}

bool have_equal_speed(const std::vector<Setting>& settings) {
  constexpr std::array<std::string_view, 3> kSpeed = {"environment.cpu", "environment.cores",
                                                      "training.threads"};
  // Runs of one method that differ among themselves make an array of values.
  return std::none_of(settings.begin(), settings.end(), [&](const Setting& setting) {
    return std::count(kSpeed.begin(), kSpeed.end(), setting.key) > 0 &&
           (!setting.is_common() || setting.values.front().second.is_array());
  });
}

// Runs beside which the machine did something else.
std::string disturbed(const ReportComparison& comparison) {
  std::vector<std::string> names;
  for (const runs::SummaryRow& row : comparison.summary.rows) {
    for (const auto& [seed, result] : row.runs) {
      if (result.is_disturbed()) {
        names.push_back(
            fmt::format("{} seed {} ({:.0f} %)", row.label, seed, 100.0 * *result.processor_share));
      }
    }
  }
  if (names.empty()) return {};
  return fmt::format(
      "{} got less than {:.0f} % of the processor: {}. Times and savings that they are part of say "
      "little.",
      names.size() == 1 ? "One run" : fmt::format("{} runs", names.size()),
      100.0 * runs::kLeastProcessorShare, enumerate(names));
}

std::string more_saved_than_pruned(const runs::Summary& summary) {
  std::vector<std::string> labels;
  for (const runs::SummaryRow& row : summary.rows) {
    if (row.saves_more_than_pruned()) labels.push_back(row.label);
  }
  if (labels.empty()) return {};
  return fmt::format(
      "{} saved more time than pruning can: something else slowed {} down. Repeat the comparison "
      "while the machine is quiet.",
      enumerate(labels), summary.baseline);
}

bool differs(const Json& stored, const Json& computed) {
  if (!stored.is_number() || !computed.is_number()) return false;
  constexpr double kTolerance = 1e-6;
  const double value = stored.get<double>();
  return std::abs(value - computed.get<double>()) > kTolerance * std::max(1.0, std::abs(value));
}

// "" if summary.json, as far as there is one, agrees with the rows; else what differs first.
std::string disagreement(const ReportComparison& comparison) {
  if (!comparison.stored_rows.is_array()) return {};
  for (const Json& stored : comparison.stored_rows) {
    const Json label = stored.is_object() ? stored.value("method", Json()) : Json();
    const auto& rows = comparison.summary.rows;
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return label == one.label; });
    if (row == rows.end()) return fmt::format("it has a row for {}", label.dump());
    const Json computed = runs::to_json(*row).flatten();
    const Json figures = stored.flatten();
    // Intervals of older versions could be narrower.
    const bool is_older = !stored.contains("more_saved_than_pruned");
    for (const auto& [pointer, value] : figures.items()) {
      if (is_older && (pointer == "/difference/low" || pointer == "/difference/high")) continue;
      const Json own = computed.value(pointer, Json());
      if (!differs(value, own)) continue;
      std::string key = pointer.substr(1);
      std::replace(key.begin(), key.end(), '/', '.');
      return fmt::format("{} of {} is {} there and {} by its runs", key, row->label, value.dump(),
                         own.dump());
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> cautions(const ReportComparison& comparison,
                                  const std::vector<Setting>& settings) {
  std::vector<std::string> texts = {unfinished(comparison.table), unequal(settings),
                                    more_saved_than_pruned(comparison.summary)};
  if (!have_equal_speed(settings)) {
    texts.emplace_back(
        "The runs were timed on different machines or with different numbers of threads: their "
        "times cannot be compared.");
  }
  texts.push_back(disturbed(comparison));
  if (const std::string difference = disagreement(comparison); !difference.empty()) {
    texts.push_back(fmt::format(
        "summary.json does not agree with the runs ({}). The figures here are the runs' own.",
        difference));
  }
  std::erase(texts, "");
  return texts;
}

}  // namespace tamis::program
