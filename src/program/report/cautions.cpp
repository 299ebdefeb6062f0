// What a reader should know before trusting a comparison.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "program/report/verdict.h"

namespace tamis::program {

namespace {

std::string unfinished(const Comparison& comparison) {
  std::vector<std::string> names;
  std::size_t num_runs = comparison.missing.size();
  for (const MethodRuns& method : comparison.methods) {
    num_runs += method.runs.size();
    for (const Run& run : method.runs) {
      if (run.is_finished()) continue;
      names.push_back(fmt::format("{} seed {} ({} of {} epochs)", method.label, run.seed,
                                  run.epochs.size(), run.num_epochs));
    }
  }
  for (const std::string& name : comparison.missing) names.push_back(name + " (not started)");
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
    const bool is_method = setting.key.starts_with("pruning.");
    const bool is_machine = setting.key.starts_with("environment.");
    if (!setting.is_common() && !is_method && !is_machine) keys.push_back(setting.key);
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

}  // namespace

std::vector<std::string> cautions(const Comparison& comparison,
                                  const std::vector<MethodSummary>& rows,
                                  const std::vector<Setting>& settings) {
  std::vector<std::string> texts = {unfinished(comparison), unequal(settings)};
  if (!have_equal_speed(settings)) {
    texts.emplace_back(
        "The runs were timed on different machines or with different numbers of threads: their "
        "times "
        "cannot be compared.");
  }
  if (comparison.summary.is_array()) {
    const std::string difference = disagreement(comparison.summary, rows);
    if (!difference.empty()) {
      texts.push_back(fmt::format(
          "summary.json does not agree with the runs ({}). The figures here are the runs' own.",
          difference));
    }
  }
  std::erase(texts, "");
  return texts;
}

}  // namespace tamis::program
