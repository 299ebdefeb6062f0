#include "program/report/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "runs/comparison.h"
#include "runs/sweep.h"

namespace tamis::program {

namespace {

namespace fs = std::filesystem;
// Without an order of keys, for settings are equal whatever their order.
using nlohmann::json;
using runs::Json;
using runs::MethodRuns;
using runs::RunData;
using runs::RunTable;

constexpr const char* kFull = "full";

void sort_by_seed(std::vector<RunData>& runs) {
  std::sort(runs.begin(), runs.end(),
            [](const RunData& a, const RunData& b) { return a.seed < b.seed; });
  const auto twice =
      std::adjacent_find(runs.begin(), runs.end(),
                         [](const RunData& a, const RunData& b) { return a.seed == b.seed; });
  if (twice == runs.end()) return;
  throw std::runtime_error(fmt::format(
      "{} and {}: method {} with seed {} and the same settings twice; give one of them",
      twice->folder.native(), std::next(twice)->folder.native(), twice->method, twice->seed));
}

void complete(ReportComparison& comparison) {
  for (const MethodRuns& method : comparison.table.methods) {
    if (method.runs.empty() || !comparison.name.empty()) continue;
    comparison.name = runs::describe_task(method.runs.front().config);
  }
  comparison.summary = runs::summarize(comparison.table);
}

// sweep.json, with the rows that its values have.
Json read_sweep(const fs::path& folder, const std::vector<MethodRuns>& rows) {
  const runs::Sweep sweep = runs::read_sweep(folder);
  Json points = Json::array();
  for (const double value : sweep.values) {
    const std::string label = sweep.method_name(value);
    // A value that was announced but is not in compare.json yet has no row.
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const MethodRuns& row) { return row.label == label; })) {
      points.push_back({{"value", value}, {"method", label}});
    }
  }
  return {{"method", sweep.method}, {"option", sweep.option}, {"points", points}};
}

ReportComparison read_comparison_folder(const fs::path& folder) {
  ReportComparison comparison;
  comparison.table = runs::read_runs(folder, runs::read_plan(folder));
  bool has_run = false;
  for (MethodRuns& method : comparison.table.methods) {
    has_run |= !method.runs.empty();
    sort_by_seed(method.runs);
  }
  if (!has_run) {
    throw std::runtime_error(fmt::format("{}: none of its {} runs is in the folder, such as {}",
                                         (folder / runs::kCompareFile).native(),
                                         comparison.table.missing.size(),
                                         comparison.table.missing.front()));
  }
  if (const fs::path summary = folder / runs::kSummaryFile; fs::exists(summary)) {
    comparison.stored_rows = runs::array_member(runs::read_json(summary), "rows", summary.native());
  }
  if (fs::exists(folder / runs::kSweepFile)) {
    comparison.sweep = read_sweep(folder, comparison.table.methods);
  }
  complete(comparison);
  return comparison;
}

// What makes two runs repetitions of each other: all but names, seeds and the machine
// with its folders.
json identity_of(const RunData& run) {
  json identity = run.config;
  for (const char* key : {"name", "seed", "environment", "record", "gallery"}) identity.erase(key);
  identity["data"].erase("data_dir");
  return identity;
}

bool have_one_name(const MethodRuns& method) {
  return std::all_of(method.runs.begin(), method.runs.end(),
                     [&](const RunData& run) { return run.name == method.runs.front().name; });
}

// "delta 0.5, alpha 0.8": the settings of one variant in which the variants differ.
std::string differences(const json& settings, const std::vector<json>& variants) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : settings.items()) {
    const bool is_shared = std::all_of(variants.begin(), variants.end(),
                                       [&key = key, &value = value](const json& other) {
                                         return other.contains(key) && other[key] == value;
                                       });
    if (is_shared) continue;
    parts.push_back(fmt::format("{} {}", key.substr(key.rfind('/') + 1),
                                value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// One variant of a method is called by the method's name, several by the names of their runs if
// that tells them apart, and otherwise by the settings in which they differ.
void label_variants(std::vector<MethodRuns*>& variants) {
  const std::string method = variants.front()->runs.front().method;
  if (variants.size() == 1) {
    variants.front()->label = method;
    return;
  }
  std::set<std::string> names;
  bool are_named = true;
  std::vector<json> settings;
  for (const MethodRuns* variant : variants) {
    are_named &= have_one_name(*variant) && names.insert(variant->runs.front().name).second;
    settings.push_back(identity_of(variant->runs.front()).flatten());
  }
  for (std::size_t k = 0; k < variants.size(); ++k) {
    const std::string difference = differences(settings[k], settings);
    variants[k]->label = are_named            ? variants[k]->runs.front().name
                         : difference.empty() ? fmt::format("{} (default)", method)
                                              : fmt::format("{} ({})", method, difference);
  }
}

void label_methods(RunTable& table) {
  std::map<std::string, std::vector<MethodRuns*>> by_method;
  for (MethodRuns& method : table.methods) {
    by_method[method.runs.front().method].push_back(&method);
  }
  for (auto& [name, variants] : by_method) {
    label_variants(variants);
    // With two kinds of full run, neither is what all others are to be measured against.
    if (name == kFull && variants.size() == 1) table.baseline = kFull;
  }
  std::stable_partition(table.methods.begin(), table.methods.end(),
                        [&](const MethodRuns& method) { return method.label == table.baseline; });
}

std::vector<ReportComparison> compare_loose_runs(std::vector<RunData> loose) {
  std::vector<ReportComparison> comparisons;
  std::map<std::string, std::size_t> by_task;
  std::map<std::string, std::size_t> by_identity;
  for (RunData& run : loose) {
    const json identity = identity_of(run);
    const std::string task = identity["data"].dump() + runs::to_json(run.headline()).dump();
    const auto [place, is_new] = by_task.try_emplace(task, comparisons.size());
    if (is_new) comparisons.emplace_back();
    std::vector<MethodRuns>& methods = comparisons[place->second].table.methods;
    const auto [variant, is_first] = by_identity.try_emplace(identity.dump(), methods.size());
    if (is_first) methods.emplace_back();
    methods[variant->second].runs.push_back(std::move(run));
  }
  for (ReportComparison& comparison : comparisons) {
    for (MethodRuns& method : comparison.table.methods) sort_by_seed(method.runs);
    label_methods(comparison.table);
    complete(comparison);
  }
  return comparisons;
}

}  // namespace

std::vector<ReportComparison> read_comparisons(const std::vector<std::string>& folders) {
  std::vector<ReportComparison> comparisons;
  std::vector<RunData> loose;
  std::set<fs::path> seen;
  for (const std::string& name : folders) {
    const fs::path folder(name);
    if (!fs::is_directory(folder)) {
      throw std::runtime_error(fmt::format("{}: must be the folder of a run, got {}", name,
                                           fs::exists(folder) ? "a file" : "nothing there"));
    }
    if (!seen.insert(fs::canonical(folder)).second) continue;
    if (fs::exists(folder / runs::kCompareFile)) {
      comparisons.push_back(read_comparison_folder(folder));
    } else if (runs::is_run(folder)) {
      loose.push_back(runs::read_run(folder));
    } else {
      throw std::runtime_error(fmt::format(
          "{}: must be a run (with config.json) or a comparison (with compare.json), got neither",
          name));
    }
  }
  std::vector<ReportComparison> more = compare_loose_runs(std::move(loose));
  std::move(more.begin(), more.end(), std::back_inserter(comparisons));
  return comparisons;
}

}  // namespace tamis::program
