// Comparison: methods times seeds, what is done of them, and what is left to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runs/run.h"
#include "runs/run_folder.h"
#include "runs/summary.h"

namespace tamis::runs {

inline constexpr const char* kCompareFile = "compare.json";
inline constexpr const char* kSummaryFile = "summary.json";

struct PlannedMethod {
  std::string name;
  Json settings = {};  // what the name stands for; null if only the training program knows
};

// compare.json.
struct ComparisonPlan {
  Json shared = Json::object();  // settings of all runs
  // What a folder has where it does not name a setting that `shared` names: it is older. Not
  // stored.
  Json former = Json::object();
  std::vector<PlannedMethod> methods = {};
  std::vector<std::uint64_t> seeds = {};
  std::string baseline = {};  // name of one of the methods
  // Value of the headline whose time of arrival is compared.
  std::optional<double> reach = std::nullopt;
};

// Throws std::invalid_argument if there is no method or no seed, if one is there twice, if a name
// cannot be part of a folder's name, or if the baseline is not one of the methods.
void validate(const ComparisonPlan& plan);

// Throws std::runtime_error with the file.
ComparisonPlan read_plan(const std::filesystem::path& folder);

// The runs of the plan that are in the folder, by method and seed. Throws std::runtime_error if one
// breaks its format or is not what its place in the plan says.
RunTable read_runs(const std::filesystem::path& folder, const ComparisonPlan& plan);

// One run of a comparison.
struct PlannedRun {
  std::size_t number = 0;  // from 1, in the order in which they are made
  std::size_t total = 0;
  const PlannedMethod* method = nullptr;
  std::uint64_t seed = 0;
  std::filesystem::path folder;

  // "[2/18] infobatch seed 1".
  std::string title() const;
  // Throws std::runtime_error if the folder holds a run of another method or seed.
  RunData read() const;
  // True if the folder holds the whole run.
  bool is_finished() const;
};

// Runs that got too little of the processor, and whether they are made again.
class Attempts {
 public:
  explicit Attempts(bool repeats_disturbed) : num_left_(repeats_disturbed ? 2 : 0) {}

  // True if the run is finished, was disturbed, and may be made once more: its files are then gone.
  bool discards(const PlannedRun& run);

 private:
  int num_left_;
};

// A folder with compare.json, one run folder METHOD-seedS per pair, and summary.json at the end.
class Comparison {
 public:
  // In a new folder, or in one that holds a comparison with the same settings, whose runs are kept;
  // methods and seeds are then added to those it has. Throws std::runtime_error if the folder holds
  // anything else or the settings differ, and says which.
  static Comparison create(const std::filesystem::path& path, const ComparisonPlan& plan,
                           RunFolder::Existing existing);
  // The comparison that the folder holds. Throws std::runtime_error if there is none.
  static Comparison open(const std::filesystem::path& path);
  // The comparison that another process of the same team has created or opened.
  static Comparison join(const std::filesystem::path& path);

  const ComparisonPlan& plan() const { return *plan_; }
  const std::filesystem::path& path() const { return path_; }

  // All runs: seed by seed, all methods of a seed one after the other and beginning with another
  // one for every seed, so that a machine that grows slower or faster does so for all of them.
  std::vector<PlannedRun> runs() const;

  // Of all runs. Throws std::runtime_error if one is not finished.
  Summary summarize() const;
  // The same, and writes summary.json.
  Summary finish() const;

 private:
  Comparison(std::filesystem::path path, std::unique_ptr<FolderLock> lock, ComparisonPlan plan);

  std::filesystem::path path_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<const ComparisonPlan> plan_;  // where PlannedRun::method points to
};

}  // namespace tamis::runs
