// Comparison: methods times seeds on the same data, model and initial weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "training/trainer/run_config.h"
#include "training/trainer/run_folder.h"
#include "training/trainer/summary.h"
#include "training/trainer/trainer.h"

namespace tamis::training {

struct ComparisonConfig {
  RunConfig shared;  // its method and its seed are not used
  std::vector<Method> methods;
  std::vector<std::uint64_t> seeds;
  std::string baseline;  // name of one of the methods
};

// Throws std::invalid_argument if there is no method or no seed, if one is there twice, or if the
// baseline is not one of the methods.
void validate(const ComparisonConfig& config);

// One run of a comparison.
struct ComparisonRun {
  std::size_t number = 0;  // from 1, in the order in which they are made
  std::size_t total = 0;
  const Method* method = nullptr;
  std::uint64_t seed = 0;
  std::filesystem::path folder;
};

class ComparisonObserver {
 public:
  virtual ~ComparisonObserver() = default;
  // Called before a run starts or continues; the result follows it.
  virtual std::unique_ptr<TrainingObserver> begin_run(const ComparisonRun& run) = 0;
  // Called after a run, also for those that were finished before.
  virtual void end_run(const ComparisonRun& run, const RunResult& result, bool was_finished) = 0;
};

// A folder with compare.json, one run folder METHOD-seedS per pair, and summary.json at the end.
class Comparison {
 public:
  // In a new folder, or in one that holds a comparison with the same settings, whose runs are kept;
  // methods and seeds are then added to those it has. Throws std::runtime_error if the folder holds
  // anything else or the settings differ, and says which.
  static Comparison create(const std::filesystem::path& path, const ComparisonConfig& config,
                           RunFolder::Existing existing);
  // The comparison that the folder holds. Throws std::runtime_error if there is none.
  static Comparison open(const std::filesystem::path& path);
  // The comparison that another process of the same team has created or opened.
  static Comparison join(const std::filesystem::path& path);

  const ComparisonConfig& config() const { return config_; }
  const std::filesystem::path& path() const { return path_; }

  // All runs: seed by seed, all methods of a seed one after the other and beginning with another
  // one for every seed, so that a machine that grows slower or faster does so for all of them.
  std::vector<ComparisonRun> runs() const;

  // Makes the runs that are missing and continues the one that was interrupted. Writes summary.json
  // at the end. `data` must be load_run_data() of the shared settings. With several processes, each
  // calls it.
  Outcome run(const DataSplits& data, ComparisonObserver& observer, const StopRequest& stop,
              const Team& team = Team(nullptr), Layout layout = Layout::automatic);

  // Of all runs. Throws std::runtime_error if one is not finished.
  Summary summarize() const;

 private:
  Comparison(std::filesystem::path path, std::unique_ptr<FolderLock> lock, ComparisonConfig config);

  std::filesystem::path path_;
  std::unique_ptr<FolderLock> lock_;
  ComparisonConfig config_;
};

}  // namespace tamis::training
