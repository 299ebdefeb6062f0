// ProcessGroup: the ranks of a run on torch's own engine (c10d with Gloo).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tamis/communicator.h"

namespace at {
class Tensor;
}

namespace tamis::libtorch {

// Where this process stands among the ranks, and where they meet.
struct ProcessGroupOptions {
  std::size_t rank = 0;
  std::size_t size = 1;
  std::size_t num_here = 1;  // of these, the ones on this machine, as far as the launcher says
  std::string host = "127.0.0.1";  // of the store; rank 0 runs it, unless the launcher does
  std::uint16_t port = 29500;
  bool has_agent_store = false;  // the launcher (torchrun) runs the store
  std::string prefix;            // of all keys in the store: another one for every restart
  // How long to wait for other ranks, also when the group is made.
  std::chrono::milliseconds time_limit = kDefaultTimeLimit;
};

// As the launcher says: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun and scripts), or
// the variables of mpirun (Open MPI, MPICH) or srun for the first two. Nothing if there are none.
// Throws std::invalid_argument if they make no sense.
std::optional<ProcessGroupOptions> process_group_from_environment();

// Gloo over TCP, CPU tensors. If a rank dies, hangs, or never comes, every other rank gets a
// std::runtime_error that names it, within the time limit; the group cannot be used afterwards.
// SIGPIPE is ignored from then on, unless the program has a handler for it. One thread only.
class ProcessGroup final : public Communicator {
 public:
  // Collective. Throws std::runtime_error, naming the ranks that did not come.
  explicit ProcessGroup(const ProcessGroupOptions& options);
  ~ProcessGroup() override;

  std::size_t rank() const override { return options_.rank; }
  std::size_t size() const override { return options_.size; }
  std::chrono::milliseconds time_limit() const override { return options_.time_limit; }

  // Collective: every element becomes the sum over all ranks. Not counted in bytes_sent().
  void sum(const at::Tensor& tensor);
  // Collective: every rank gets the tensor of rank 0.
  void copy_from_first(const at::Tensor& tensor);

 private:
  struct Connection;

  void reduce(std::span<std::int64_t> numbers, Reduction reduction) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override;
  template <typename Start>
  void run(const Start& start);
  [[noreturn]] void fail(const std::string& reason);

  ProcessGroupOptions options_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace tamis::libtorch
