// Where LibTorch comes without Gloo's headers.
#include <stdexcept>

#include "tamis/libtorch/process_group.h"

namespace tamis::libtorch {

struct ProcessGroup::Connection {};

ProcessGroup::ProcessGroup(const ProcessGroupOptions& options) : options_(options) {
  if (options.size == 1) return;
  throw std::runtime_error("ProcessGroup: this tamis was built without Gloo, for one process");
}

ProcessGroup::~ProcessGroup() = default;

// Nobody else is there.
void ProcessGroup::sum(torch::Tensor) {}
void ProcessGroup::copy_from_first(torch::Tensor) {}
void ProcessGroup::reduce(std::span<std::int64_t>, Reduction) {}
std::vector<std::vector<std::byte>> ProcessGroup::gather(std::span<const std::byte> bytes) {
  return {{bytes.begin(), bytes.end()}};
}

}  // namespace tamis::libtorch
