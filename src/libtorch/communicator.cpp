#include "tamis/libtorch/communicator.h"

#include <stdexcept>
#include <utility>

#include "libtorch/collectives.h"

namespace tamis::libtorch {

namespace {

template <typename Group>
class GroupCommunicator final : public Communicator {
 public:
  GroupCommunicator(c10::intrusive_ptr<Group> group, torch::Device device,
                    std::chrono::milliseconds time_limit)
      : group_(std::move(group)), device_(device), time_limit_(time_limit) {
    if (!group_) throw std::invalid_argument("make_communicator: group must not be null");
  }

  std::size_t rank() const override { return static_cast<std::size_t>(group_->getRank()); }
  std::size_t size() const override { return static_cast<std::size_t>(group_->getSize()); }
  std::chrono::milliseconds time_limit() const override { return time_limit_; }

 private:
  void reduce(std::span<std::int64_t> numbers, Reduction reduction) override {
    libtorch::reduce(device_, numbers, reduction,
                     [this](const auto& start) { start(*group_)->wait(); });
  }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
    return libtorch::gather(device_, size(), bytes,
                            [this](const auto& start) { start(*group_)->wait(); });
  }

  c10::intrusive_ptr<Group> group_;
  torch::Device device_;
  std::chrono::milliseconds time_limit_;
};

}  // namespace

std::shared_ptr<Communicator> make_communicator(c10::intrusive_ptr<c10d::ProcessGroup> group,
                                                torch::Device device,
                                                std::chrono::milliseconds time_limit) {
  return std::make_shared<GroupCommunicator<c10d::ProcessGroup>>(std::move(group), device,
                                                                 time_limit);
}

std::shared_ptr<Communicator> make_communicator(c10::intrusive_ptr<c10d::Backend> group,
                                                torch::Device device,
                                                std::chrono::milliseconds time_limit) {
  return std::make_shared<GroupCommunicator<c10d::Backend>>(std::move(group), device, time_limit);
}

}  // namespace tamis::libtorch
