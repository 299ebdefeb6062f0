// Team: the processes of a run that train one model together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tamis/libtorch/process_group.h"
#include "training/trainer/evaluation.h"

namespace torch::nn {
class Module;
}

namespace tamis::training {

// What the ranks of one step add up besides the gradients.
struct StepSums {
  double loss = 0.0;  // mean loss of the rank's batch; afterwards the mean over the ranks
  std::uint64_t correct = 0;
  std::uint64_t samples = 0;
  bool stops = false;  // afterwards true if any rank wants to stop
};

// One process, or several with a process group. Every call is made by all ranks.
class Team {
 public:
  // Null: this process is alone.
  explicit Team(std::shared_ptr<libtorch::ProcessGroup> group);

  std::size_t rank() const { return communicator_->rank(); }
  std::size_t size() const { return communicator_->size(); }
  bool is_alone() const { return size() == 1; }
  // Rank 0 writes files and reports.
  bool is_first() const { return rank() == 0; }
  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }

  // Gradients become their mean over the ranks; one message for everything.
  void average(const torch::nn::Module& model, StepSums& sums);

  // Running statistics, which every rank has of its own batches, become those of rank 0.
  void share_buffers(const torch::nn::Module& model);

  // Every rank tests a part of the data. Nothing if `stop` asked to stop, which only a process that
  // is alone listens to.
  std::optional<Evaluation> evaluate(Model& model, const Dataset& data, bool flips,
                                     const StopRequest& stop);

 private:
  std::shared_ptr<libtorch::ProcessGroup> group_;
  std::shared_ptr<Communicator> communicator_;
};

// Connects to the other processes if a launcher started several. Throws std::runtime_error if one
// does not answer within the time limit.
Team connect_team(std::chrono::milliseconds time_limit);
// How many of them a launcher started on this machine; 1 without a launcher.
std::size_t num_processes_here();

}  // namespace tamis::training
