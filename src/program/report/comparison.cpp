#include "program/report/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "program/shared/json_input.h"

namespace tamis::program {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFull = "full";

void sort_by_seed(std::vector<Run>& runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.seed < b.seed; });
  const auto twice = std::adjacent_find(
      runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.seed == b.seed; });
  if (twice == runs.end()) return;
  throw std::runtime_error(fmt::format(
      "{} and {}: method {} with seed {} and the same settings twice; give one of them",
      twice->folder.native(), std::next(twice)->folder.native(), twice->method, twice->seed));
}

// Data set and model of the first run there is.
std::string describe(const Comparison& comparison) {
  for (const MethodRuns& method : comparison.methods) {
    if (method.runs.empty()) continue;
    const json& config = method.runs.front().config;
    return fmt::format("{}, {}", config["data"]["name"].get<std::string>(),
                       config["model"]["name"].get<std::string>());
  }
  return {};
}

std::vector<std::string> read_labels(const json& document, const std::string& source) {
  std::vector<std::string> labels;
  for (const json& value : array_member(document, "methods", source)) {
    if (!value.is_string() || std::count(labels.begin(), labels.end(), value) > 0) {
      refuse(source, fmt::format("methods[{}]", labels.size()), "a name of its own", value);
    }
    labels.push_back(value.get<std::string>());
  }
  if (labels.empty()) refuse(source, "methods", "an array of at least one", json::array());
  return labels;
}

std::vector<std::uint64_t> read_seeds(const json& document, const std::string& source) {
  std::vector<std::uint64_t> seeds;
  for (const json& value : array_member(document, "seeds", source)) {
    if (!value.is_number_unsigned() || std::count(seeds.begin(), seeds.end(), value) > 0) {
      refuse(source, fmt::format("seeds[{}]", seeds.size()), "a whole number of its own", value);
    }
    seeds.push_back(value.get<std::uint64_t>());
  }
  if (seeds.empty()) refuse(source, "seeds", "an array of at least one", json::array());
  return seeds;
}

// The run of one method and seed, which must be what the name of its folder says.
Run read_planned_run(const fs::path& folder, const std::string& label, std::uint64_t seed) {
  Run run = read_run(folder);
  const std::string source = (folder / "config.json").native();
  if (run.method != label && run.name != label) refuse(source, "method or name", label, run.method);
  if (run.seed != seed) refuse(source, "training.seed", fmt::format("{}", seed), run.seed);
  return run;
}

// sweep.json, with the rows that its values have.
nlohmann::ordered_json read_sweep(const fs::path& path, const std::vector<std::string>& labels) {
  const std::string& source = path.native();
  const json document = read_json(source);
  require_format(document, "tamis-sweep", source);
  const json& method = member(document, "method", source);
  const json& option = member(document, "option", source);
  if (!method.is_string()) refuse(source, "method", "a text", method);
  if (!option.is_string()) refuse(source, "option", "a text", option);
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const json& value : array_member(document, "values", source)) {
    if (!value.is_number()) refuse(source, "values", "numbers", value);
    const auto name = method.get<std::string>();
    const std::string label =
        fmt::format("{}{}{}={}", name, name.find(':') == std::string::npos ? ':' : ',',
                    option.get<std::string>(), value.get<double>());
    // A value that was announced but is not in compare.json yet.
    if (std::count(labels.begin(), labels.end(), label) == 0) continue;
    points.push_back({{"value", value}, {"method", label}});
  }
  return {{"method", method}, {"option", option}, {"points", points}};
}

Comparison read_comparison_folder(const fs::path& folder) {
  const std::string source = (folder / "compare.json").native();
  const json document = read_json(source);
  require_format(document, "tamis-compare", source);
  Comparison comparison;
  const std::vector<std::string> labels = read_labels(document, source);
  const std::vector<std::uint64_t> seeds = read_seeds(document, source);
  for (const std::string& label : labels) {
    MethodRuns method{.label = label, .runs = {}};
    for (const std::uint64_t seed : seeds) {
      const std::string name = fmt::format("{}-seed{}", label, seed);
      if (fs::exists(folder / name / "config.json")) {
        method.runs.push_back(read_planned_run(folder / name, label, seed));
      } else {
        comparison.missing.push_back(name);
      }
    }
    sort_by_seed(method.runs);
    comparison.methods.push_back(std::move(method));
  }
  if (comparison.missing.size() == labels.size() * seeds.size()) {
    throw std::runtime_error(fmt::format("{}: none of its {} runs is in the folder, such as {}",
                                         source, comparison.missing.size(),
                                         comparison.missing.front()));
  }
  if (const auto baseline = document.find("baseline");
      baseline != document.end() && !baseline->is_null()) {
    if (std::count(labels.begin(), labels.end(), *baseline) == 0) {
      refuse(source, "baseline", fmt::format("one of the methods {}", fmt::join(labels, ", ")),
             *baseline);
    }
    comparison.baseline = baseline->get<std::string>();
  }
  if (const fs::path summary = folder / "summary.json"; fs::exists(summary)) {
    comparison.summary = array_member(read_json(summary.native()), "rows", summary.native());
  }
  if (const fs::path sweep = folder / "sweep.json"; fs::exists(sweep)) {
    comparison.sweep = read_sweep(sweep, labels);
  }
  comparison.name = describe(comparison);
  return comparison;
}

// What makes two runs repetitions of each other: all but names, seeds and the machine
// with its folders.
json identity_of(const Run& run) {
  json identity = run.config;
  for (const char* key : {"name", "environment", "record"}) identity.erase(key);
  identity["data"].erase("data_dir");
  identity["training"].erase("seed");
  if (const auto pruning = identity.find("pruning");
      pruning != identity.end() && pruning->is_object()) {
    pruning->erase("seed");
  }
  return identity;
}

bool have_one_name(const MethodRuns& method) {
  return std::all_of(method.runs.begin(), method.runs.end(),
                     [&](const Run& run) { return run.name == method.runs.front().name; });
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

void label_methods(Comparison& comparison) {
  std::map<std::string, std::vector<MethodRuns*>> by_method;
  for (MethodRuns& method : comparison.methods) {
    by_method[method.runs.front().method].push_back(&method);
  }
  for (auto& [name, variants] : by_method) {
    label_variants(variants);
    // With two kinds of full run, neither is what all others are to be measured against.
    if (name == kFull && variants.size() == 1) comparison.baseline = kFull;
  }
  std::stable_partition(
      comparison.methods.begin(), comparison.methods.end(),
      [&](const MethodRuns& method) { return method.label == comparison.baseline; });
}

std::vector<Comparison> compare_loose_runs(std::vector<Run> runs) {
  std::vector<Comparison> comparisons;
  std::map<std::string, std::size_t> by_data;
  std::map<std::string, std::size_t> by_identity;
  for (Run& run : runs) {
    const json identity = identity_of(run);
    const auto [data, is_new] = by_data.try_emplace(identity["data"].dump(), comparisons.size());
    if (is_new) comparisons.emplace_back();
    std::vector<MethodRuns>& methods = comparisons[data->second].methods;
    const auto [variant, is_first] = by_identity.try_emplace(identity.dump(), methods.size());
    if (is_first) methods.emplace_back();
    methods[variant->second].runs.push_back(std::move(run));
  }
  for (Comparison& comparison : comparisons) {
    for (MethodRuns& method : comparison.methods) sort_by_seed(method.runs);
    label_methods(comparison);
    comparison.name = describe(comparison);
  }
  return comparisons;
}

}  // namespace

std::vector<Comparison> read_comparisons(const std::vector<std::string>& folders) {
  std::vector<Comparison> comparisons;
  std::vector<Run> loose;
  std::set<fs::path> seen;
  for (const std::string& name : folders) {
    const fs::path folder(name);
    if (!fs::is_directory(folder)) {
      throw std::runtime_error(fmt::format("{}: must be the folder of a run, got {}", name,
                                           fs::exists(folder) ? "a file" : "nothing there"));
    }
    if (!seen.insert(fs::canonical(folder)).second) continue;
    if (fs::exists(folder / "compare.json")) {
      comparisons.push_back(read_comparison_folder(folder));
    } else if (fs::exists(folder / "config.json")) {
      loose.push_back(read_run(folder));
    } else {
      throw std::runtime_error(fmt::format(
          "{}: must be a run (with config.json) or a comparison (with compare.json), got neither",
          name));
    }
  }
  std::vector<Comparison> more = compare_loose_runs(std::move(loose));
  std::move(more.begin(), more.end(), std::back_inserter(comparisons));
  return comparisons;
}

}  // namespace tamis::program
