// Checkpoints: model, optimiser and pruner of one moment of a run.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "runs/epoch_metrics.h"
#include "tamis/communicator.h"
#include "tamis/pruner.h"
#include "training/trainer/running_epoch.h"
#include "training/trainer/sample_history.h"

namespace tamis::training {

// The parts of a run that a checkpoint saves and restores.
struct CheckpointParts {
  torch::nn::Module& model;
  torch::optim::Optimizer& optimizer;
  Pruner& pruner;
  Communicator& communicator;        // of the processes of the run
  SampleHistory* history = nullptr;  // of a run with a gallery
};

// Where the run stands.
struct CheckpointState {
  std::uint64_t step = 0;         // steps taken since the run began
  std::uint64_t epochs_done = 0;  // epochs whose metrics are complete
  RunningEpoch running = {};      // of the epoch after these
  // Metrics of epoch epochs_done - 1: the checkpoint is written before metrics.jsonl is.
  std::optional<runs::EpochMetrics> last_metrics = std::nullopt;
  bool has_history = false;  // of a loaded one: the history was in it
};

// Replaces the checkpoint in `folder`. Model and optimiser go to one new file, the pruner to
// another, the history to a third; then checkpoint.json, which names them, replaces the old one in
// one move, and the old files go. So at every moment there is one complete checkpoint: the old or
// the new one. A final checkpoint has the names checkpoint.safetensors and pruner.safetensors. With
// several processes all call it and rank 0 writes. Throws std::runtime_error.
void save_checkpoint(const std::filesystem::path& folder, const CheckpointParts& parts,
                     const CheckpointState& state, bool is_final);

// Restores the parts from the checkpoint in `folder`; empty if it has none. With several processes
// all call it. Throws std::runtime_error if a file is missing, damaged, or of another run.
std::optional<CheckpointState> load_checkpoint(const std::filesystem::path& folder,
                                               const CheckpointParts& parts);

}  // namespace tamis::training
