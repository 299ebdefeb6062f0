// make_communicator: the ranks of a process group that the program has already.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "tamis/communicator.h"

namespace tamis::libtorch {

// Any group of c10d (Gloo, NCCL, MPI, ...), for Pruner and Handler; the group itself reports ranks
// that fail, within a time limit of its own. `device` is where it expects tensors: NCCL wants the
// GPU of this rank. `time_limit` is what Communicator::time_limit returns.
std::shared_ptr<Communicator> make_communicator(
    c10::intrusive_ptr<c10d::ProcessGroup> group, torch::Device device = torch::kCPU,
    std::chrono::milliseconds time_limit = kDefaultTimeLimit);
std::shared_ptr<Communicator> make_communicator(
    c10::intrusive_ptr<c10d::Backend> group, torch::Device device = torch::kCPU,
    std::chrono::milliseconds time_limit = kDefaultTimeLimit);

}  // namespace tamis::libtorch
