// TrainingObserver: follows a run, step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "runs/epoch_metrics.h"
#include "tamis/types.h"
#include "training/trainer/running_epoch.h"

namespace tamis::training {

// Asked between two batches; true: stop as soon as possible.
using StopRequest = std::function<bool()>;

enum class Outcome { finished, interrupted };

// One training step, as an observer sees it. Everything is valid during the call only.
struct StepInfo {
  std::uint64_t epoch = 0;
  std::uint64_t num_steps = 0;  // of this epoch
  double progress = 0.0;        // share of the run that is done, in [0, 1]
  double pruned_share = 0.0;    // of the run so far
  const RunningEpoch& running;  // this step included
  std::span<const SampleIndex> indices;
  double mean_loss = 0.0;         // without weights
  std::span<const float> losses;  // one per sample; empty if the pruner sees only the mean
};

// Its time is not counted as training time.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void on_step(const StepInfo&) {}
  virtual void on_epoch(const runs::EpochMetrics&) {}
};

}  // namespace tamis::training
