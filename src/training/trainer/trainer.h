// Trainer: one run, from the first step to the last, with checkpoints from which it continues
// exactly. The program sees torch through this header alone, which does not include it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runs/run.h"
#include "runs/run_folder.h"
#include "tamis/pruner.h"
#include "training/trainer/evaluation.h"
#include "training/trainer/run_config.h"
#include "training/trainer/sample_history.h"
#include "training/trainer/team.h"
#include "training/trainer/training_observer.h"

namespace torch::optim {
class Optimizer;
}

namespace tamis::libtorch {
class OutputWatch;
}

namespace tamis::training {

using runs::EpochMetrics;
using runs::RunFolder;

class Model;
struct Dataset;
struct DataSplits;
struct StepLoss;

// All randomness comes from the seed, the epoch and the sample: the initial weights depend on the
// seed and the model alone, and with the same number of threads the same run gives the same
// weights. Not thread-safe; sets the number of threads of torch for the whole process.
//
// With several processes, each has a Trainer and makes the same calls. They share every batch and
// average their gradients; rank 0 alone writes to the folder, which all of them read. A run can be
// resumed by another number of processes.
class Trainer {
 public:
  // A run in a folder that RunFolder::create made, from the start, or in one that RunFolder::open
  // found, from its last checkpoint on. `data` must be load_run_data() of the same settings;
  // label noise and imbalance are added here, by the seed. Throws std::invalid_argument if a
  // setting is out of range, and std::runtime_error if a checkpoint is damaged or of another run,
  // or if the processes have different settings.
  Trainer(RunConfig config, const DataSplits& data, RunFolder folder, Team team = Team(nullptr),
          Layout layout = Layout::automatic);
  Trainer(Trainer&&) noexcept;
  ~Trainer();

  // Trains until the end, or until `stop` asks to stop, which takes one step at most. Either way
  // the folder then has a checkpoint of the present state. Throws std::runtime_error if the loss is
  // no longer a number.
  // On ranks other than 0 the observer is told of the rank's own steps and of all epochs.
  Outcome run(TrainingObserver& observer, const StopRequest& stop);

  const RunConfig& config() const { return config_; }
  const RunFolder& folder() const { return folder_; }
  Model& model() { return *model_; }
  std::int64_t num_parameters() const;
  const Pruner& pruner() const { return pruner_; }
  const Team& team() const { return team_; }
  // Of the finished epochs.
  const std::vector<EpochMetrics>& metrics() const { return metrics_; }

 private:
  // Of a static method, before its first epoch. False if `stop` asked to stop.
  bool give_static_scores(const StopRequest& stop);
  bool train_epoch(TrainingObserver& observer, const StopRequest& stop);
  void train_step(const EpochPlan& plan, TrainingObserver& observer);
  void observe(std::size_t begin, std::size_t count, const StepLoss& loss,
               const libtorch::OutputWatch& outputs);
  // True: the pruner gets one loss per sample.
  bool observes_losses() const { return uses_sample_losses_ || config_.num_recorded > 0; }
  // True: the pruner gets the norms of the outputs' gradients.
  bool watches_outputs() const { return uses_gradients_ || config_.num_recorded > 0; }
  bool should_stop(const StopRequest& stop);
  bool finish_epoch(TrainingObserver& observer, const StopRequest& stop);
  void write_samples();
  void start_recording();
  bool record_true_losses(const StopRequest& stop);
  void start_or_restore();
  void save(bool is_final);
  void restore();
  std::uint64_t epoch() const { return metrics_.size(); }

  RunConfig config_;
  Team team_;
  std::unique_ptr<const DataSplits> data_;  // shares the memory of what it was given
  RunFolder folder_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  Pruner pruner_;
  std::size_t batch_size_;   // of each process
  bool uses_scores_;         // false: the policy never looks at them, or they are given
  bool uses_sample_losses_;  // true: the score is made from one loss per sample
  bool uses_gradients_;      // true: from the gradients of the outputs
  std::optional<SampleHistory> history_;  // of a run with a gallery
  std::vector<EpochMetrics> metrics_;
  RunningEpoch running_;
  std::uint64_t step_ = 0;
  std::uint64_t num_steps_ = 0;  // of the running epoch
  bool wants_stop_ = false;      // this process was asked to stop
  bool stops_ = false;           // all processes know that one was
};

// The training and test samples that a run uses. Throws as load_data() does.
std::shared_ptr<const DataSplits> load_run_data(const DataConfig& config);

// The model of a run, with the weights before the first step, which come from the seed alone; no
// other random number of a run comes from torch.
std::shared_ptr<Model> make_initial_model(const RunConfig& config, const Dataset& data);

}  // namespace tamis::training
