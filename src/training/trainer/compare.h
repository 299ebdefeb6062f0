// Makes the runs of a comparison with the trainer: same data, model and initial weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runs/comparison.h"
#include "training/trainer/run_config.h"
#include "training/trainer/trainer.h"

namespace tamis::training {

// `shared`: its method and its seed are not used. Throws std::invalid_argument as
// runs::validate() does.
runs::ComparisonPlan make_plan(const RunConfig& shared, const std::vector<Method>& methods,
                               std::vector<std::uint64_t> seeds, std::string baseline);

// What all runs share, without method and seed. Throws std::runtime_error if the comparison is not
// one of the trainer's.
RunConfig shared_config(const runs::Comparison& comparison);

class ComparisonObserver {
 public:
  virtual ~ComparisonObserver() = default;
  // Called before a run starts or continues; the result follows it.
  virtual std::unique_ptr<TrainingObserver> begin_run(const runs::PlannedRun& run) = 0;
  // Called after a run, also for those that were finished before.
  virtual void end_run(const runs::PlannedRun& run, bool was_finished) = 0;
};

// Makes the runs that are missing and continues the one that was interrupted. Writes summary.json
// at the end. `data` must be load_run_data() of the shared settings. With several processes, each
// calls it. `repeats_disturbed`: see runs::Attempts.
Outcome run_comparison(const runs::Comparison& comparison, const DataSplits& data,
                       ComparisonObserver& observer, const StopRequest& stop,
                       const Team& team = Team(nullptr), Layout layout = Layout::automatic,
                       bool repeats_disturbed = false);

}  // namespace tamis::training
