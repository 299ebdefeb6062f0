#include "runs/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/files/atomic_file.h"
#include "runs/run_files.h"
#include "runs/seal.h"
#include "runs/sweep.h"

namespace tamis::runs {

namespace {

namespace fs = std::filesystem;

// Version 1 need not have a checksum.
constexpr SealedFormat kCompareFormat = {
    .name = "tamis-compare",
    .newest = 2,
    .first_sealed = 2,
    .cure = "whoever changed it removes the member \"crc32c\" and sets format_version to 1"};

std::string folder_name(const std::string& method, std::uint64_t seed) {
  return fmt::format("{}-seed{}", method, seed);
}

Json to_json(const ComparisonPlan& plan) {
  Json names = Json::array();
  Json pruning = Json::object();
  for (const PlannedMethod& method : plan.methods) {
    names.push_back(method.name);
    if (!method.settings.is_null()) pruning[method.name] = method.settings;
  }
  Json json = {{"format", kCompareFormat.name},
               {"format_version", kCompareFormat.newest},
               {"methods", names},
               {"seeds", plan.seeds},
               {"baseline", plan.baseline},
               {"config", plan.shared},
               {"pruning", pruning}};
  if (plan.reach) json["reach"] = *plan.reach;
  return json;
}

// "training.epochs 16, now 8" for the first setting that differs; empty if none does.
std::string find_difference(const Json& before, const Json& now, const std::string& prefix = "") {
  for (const auto& [key, value] : before.items()) {
    const std::string name = prefix.empty() ? key : fmt::format("{}.{}", prefix, key);
    const Json other = now.value(key, Json());
    if (value == other) continue;
    if (value.is_object() && other.is_object()) return find_difference(value, other, name);
    return fmt::format("{} {}, now {}", name, value.dump(), other.dump());
  }
  return {};
}

std::string find_change(const Json& before, const Json& now, const std::string& prefix = "") {
  const std::string difference = find_difference(before, now, prefix);
  return difference.empty() ? find_difference(now, before, prefix) : difference;
}

// The plan in the folder with the methods and seeds of `added` that it does not have yet.
ComparisonPlan merge(const fs::path& path, ComparisonPlan plan, const ComparisonPlan& added) {
  const auto refuse_change = [&](const std::string& difference) {
    if (difference.empty()) return;
    throw std::runtime_error(fmt::format(
        "{}: holds a comparison with other settings ({}); --overwrite replaces it, --out chooses "
        "another folder",
        path.native(), difference));
  };
  Json before = added.former;
  before.merge_patch(plan.shared);
  refuse_change(find_change(before, added.shared));
  plan.shared = added.shared;
  for (const PlannedMethod& method : added.methods) {
    const auto known =
        std::find_if(plan.methods.begin(), plan.methods.end(),
                     [&](const PlannedMethod& other) { return other.name == method.name; });
    if (known == plan.methods.end()) {
      plan.methods.push_back(method);
    } else {
      refuse_change(find_change(known->settings, method.settings, method.name));
    }
  }
  for (const std::uint64_t seed : added.seeds) {
    if (std::find(plan.seeds.begin(), plan.seeds.end(), seed) == plan.seeds.end()) {
      plan.seeds.push_back(seed);
    }
  }
  plan.baseline = added.baseline;
  if (added.reach) plan.reach = added.reach;
  return plan;
}

// "full-seed0": how the folder of a run is named, whatever its method.
bool is_run_name(std::string_view name) {
  constexpr std::string_view kSeed = "-seed";
  const std::size_t at = name.rfind(kSeed);
  return at != std::string_view::npos && at > 0 && at + kSeed.size() < name.size() &&
         name.find_first_not_of("0123456789", at + kSeed.size()) == std::string_view::npos;
}

// The temporary file of one that a comparison was writing when it was killed.
bool is_unfinished_comparison_file(std::string_view name) {
  const std::string_view target = detail::target_of_temporary(name);
  return target == kCompareFile || target == kSummaryFile || target == kSweepFile;
}

// The comparison's folder. What a process that was killed had begun to write is gone: the lock is
// held, so nobody is still writing it.
std::unique_ptr<FolderLock> take_over(const fs::path& path) {
  auto lock = std::make_unique<FolderLock>(path);
  remove_files(path, is_unfinished_comparison_file);
  return lock;
}

// The runs of the comparison, also those that were killed at once; other folders, and other files
// in those of the runs, stay.
void remove_comparison(const fs::path& path) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(path)) {
    const fs::path& folder = entry.path();
    if (entry.is_directory() && is_run_name(folder.filename().native()) &&
        (is_run(folder) || holds_unfinished_only(folder))) {
      folders.push_back(folder);
    }
  }
  for (const fs::path& folder : folders) {
    remove_run(folder);
    if (fs::is_empty(folder)) fs::remove(folder);
  }
  fs::remove(path / kSweepFile);
  fs::remove(path / kSummaryFile);
  fs::remove(path / kCompareFile);
}

// True if nothing but what a killed process had begun to write is in the folder.
bool holds_beginnings_only(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    if (detail::target_of_temporary(entry.path().filename().native()) != kCompareFile) return false;
  }
  return true;
}

bool is_name_of_folder(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c != '/' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
  });
}

bool has_comparison(const fs::path& path) { return fs::is_regular_file(path / kCompareFile); }

}  // namespace

void validate(const ComparisonPlan& plan) {
  const auto require = [](bool holds, std::string_view what, std::string_view rule,
                          const auto& value) {
    detail::require(holds, "compare", what, rule, value);
  };
  require(!plan.methods.empty(), "methods", "at least one", "none");
  require(!plan.seeds.empty(), "seeds", "at least one", "none");
  std::set<std::string> names;
  for (const PlannedMethod& method : plan.methods) {
    require(is_name_of_folder(method.name), "methods",
            "names without a / and without control characters, for folders are named after them",
            method.name);
    require(names.insert(method.name).second, "methods", "there once each", method.name + " twice");
  }
  std::set<std::uint64_t> seeds;
  for (const std::uint64_t seed : plan.seeds) {
    require(seeds.insert(seed).second, "seeds", "there once each", fmt::format("{} twice", seed));
  }
  require(names.contains(plan.baseline), "baseline", "one of the methods", plan.baseline);
}

ComparisonPlan read_plan(const fs::path& folder) {
  const std::string source = (folder / kCompareFile).native();
  const Json document = read_sealed_json(source, kCompareFormat).json;
  const Fields fields(document, source);
  ComparisonPlan plan{.baseline = fields.text("baseline")};
  if (fields.find("reach") != nullptr) plan.reach = fields.finite("reach");
  if (fields.find("config") != nullptr) plan.shared = fields.object("config").json();
  const Json pruning =
      fields.find("pruning") != nullptr ? fields.object("pruning").json() : Json::object();
  for (const Json& name : array_member(document, "methods", source)) {
    if (!name.is_string()) refuse(source, "methods", "names", name);
    const auto method = name.get<std::string>();
    plan.methods.push_back({.name = method, .settings = pruning.value(method, Json())});
  }
  for (const Json& seed : array_member(document, "seeds", source)) {
    if (!seed.is_number_unsigned()) refuse(source, "seeds", "whole numbers of at least 0", seed);
    plan.seeds.push_back(seed.get<std::uint64_t>());
  }
  try {
    validate(plan);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", source, error.what()));
  }
  return plan;
}

std::string PlannedRun::title() const {
  return fmt::format("[{}/{}] {} seed {}", number, total, method->name, seed);
}

RunData PlannedRun::read() const {
  RunData run = read_run(folder);
  const std::string source = (folder / kConfigFile).native();
  if (run.method != method->name && run.name != method->name) {
    refuse(source, "method: name", method->name, run.method);
  }
  if (run.seed != seed) refuse(source, "seed", fmt::format("{}", seed), run.seed);
  return run;
}

bool PlannedRun::is_finished() const { return is_run(folder) && read().is_finished(); }

bool Attempts::discards(const PlannedRun& run) {
  if (num_left_ == 0 || !summarize_run(run.read()).is_disturbed()) return false;
  --num_left_;
  remove_run(run.folder);
  return true;
}

RunTable read_runs(const fs::path& folder, const ComparisonPlan& plan) {
  RunTable table{.baseline = plan.baseline, .methods = {}, .missing = {}, .reach = plan.reach};
  for (const PlannedMethod& method : plan.methods) {
    MethodRuns& row = table.methods.emplace_back(MethodRuns{.label = method.name, .runs = {}});
    for (const std::uint64_t seed : plan.seeds) {
      const std::string name = folder_name(method.name, seed);
      if (is_run(folder / name)) {
        row.runs.push_back(
            PlannedRun{.method = &method, .seed = seed, .folder = folder / name}.read());
      } else {
        table.missing.push_back(name);
      }
    }
  }
  return table;
}

Comparison::Comparison(fs::path path, std::unique_ptr<FolderLock> lock, ComparisonPlan plan)
    : path_(std::move(path)),
      lock_(std::move(lock)),
      plan_(std::make_unique<const ComparisonPlan>(std::move(plan))) {}

Comparison Comparison::create(const fs::path& path, const ComparisonPlan& plan,
                              RunFolder::Existing existing) {
  validate(plan);
  if (path.empty()) throw std::invalid_argument("the comparison's folder must have a name");
  const bool is_there = has_comparison(path);
  if (!is_there && fs::exists(path) && (!fs::is_directory(path) || !holds_beginnings_only(path))) {
    throw std::runtime_error(
        fmt::format("{}: is there and holds no comparison; choose another folder", path.native()));
  }
  fs::create_directories(path);
  auto lock = take_over(path);
  ComparisonPlan merged = plan;
  if (is_there && existing == RunFolder::Existing::overwrite) {
    remove_comparison(path);
  } else if (is_there) {
    merged = merge(path, read_plan(path), plan);
  }
  write_sealed_json(path / kCompareFile, to_json(merged));
  return {path, std::move(lock), std::move(merged)};
}

Comparison Comparison::open(const fs::path& path) {
  if (!has_comparison(path)) {
    throw std::runtime_error(
        fmt::format("{}: holds no comparison (no {})", path.native(), kCompareFile));
  }
  auto lock = take_over(path);
  return {path, std::move(lock), read_plan(path)};
}

Comparison Comparison::join(const fs::path& path) { return {path, nullptr, read_plan(path)}; }

std::vector<PlannedRun> Comparison::runs() const {
  std::vector<PlannedRun> runs;
  const std::size_t num_methods = plan_->methods.size();
  for (std::size_t s = 0; s < plan_->seeds.size(); ++s) {
    for (std::size_t m = 0; m < num_methods; ++m) {
      const PlannedMethod& method = plan_->methods[(s + m) % num_methods];
      runs.push_back({.number = runs.size() + 1,
                      .total = num_methods * plan_->seeds.size(),
                      .method = &method,
                      .seed = plan_->seeds[s],
                      .folder = path_ / folder_name(method.name, plan_->seeds[s])});
    }
  }
  return runs;
}

Summary Comparison::summarize() const {
  for (const PlannedRun& run : runs()) {
    if (!run.is_finished()) {
      throw std::runtime_error(fmt::format("{}: this run is not finished", run.folder.native()));
    }
  }
  return runs::summarize(read_runs(path_, *plan_));
}

Summary Comparison::finish() const {
  Summary summary = summarize();
  write_json(path_ / kSummaryFile, runs::to_json(summary));
  return summary;
}

}  // namespace tamis::runs
