// RunningEpoch: sums over the steps of an epoch that have been taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runs/json.h"
#include "training/trainer/processor_time.h"

namespace tamis::training {

struct RunningEpoch {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0.0;       // of the batches' mean losses, without weights
  double learning_rate = 0.0;  // of the last step
  double train_seconds = 0.0;  // everything but evaluation and checkpoints
  double prune_seconds = 0.0;  // of these, for plans, weights and scores
  // Empty after a checkpoint of a version that did not count it.
  std::optional<double> processor_seconds = 0.0;
  double score_seconds = 0.0;  // of train_seconds, for the scores of a static method
  ProcessorTime processor_time = {};

  void count_time(double clock, double processor) {
    train_seconds += clock;
    if (processor_seconds) *processor_seconds += processor;
  }
  void count_pruning(double clock, double processor) {
    prune_seconds += clock;
    count_time(clock, processor);
  }

  double mean_loss() const { return steps == 0 ? 0.0 : loss_sum / static_cast<double>(steps); }
  double accuracy() const {
    return samples == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(samples);
  }
};

runs::Json to_json(const RunningEpoch& running);
// The way back. Throws std::runtime_error that begins with `source`.
RunningEpoch running_from_json(const runs::Json& json, const std::string& source);

}  // namespace tamis::training
