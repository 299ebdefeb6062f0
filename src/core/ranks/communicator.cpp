#include "tamis/communicator.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace tamis {

namespace {

class SingleProcess final : public Communicator {
 public:
  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1; }
  std::chrono::milliseconds time_limit() const override { return kDefaultTimeLimit; }

 private:
  void reduce(std::span<std::int64_t>, Reduction) override {}
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
    return {{bytes.begin(), bytes.end()}};
  }
};

}  // namespace

void Communicator::all_reduce(std::span<std::int64_t> numbers, Reduction reduction) {
  if (size() == 1 || numbers.empty()) return;
  reduce(numbers, reduction);
  bytes_sent_ += numbers.size_bytes();
  bytes_received_ += numbers.size_bytes();
}

void Communicator::all_reduce(std::span<double> numbers, Reduction reduction) {
  if (size() == 1 || numbers.empty()) return;
  const auto all = all_gather(std::as_bytes(numbers));
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].size() != numbers.size_bytes()) {
      throw std::runtime_error("all_reduce: the ranks gave different numbers of doubles");
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      double theirs = 0.0;
      std::memcpy(&theirs, all[r].data() + i * sizeof theirs, sizeof theirs);
      double& result = numbers[i];
      if (r == 0) {
        result = theirs;
      } else if (reduction == Reduction::sum) {
        result += theirs;
      } else {
        result =
            reduction == Reduction::minimum ? std::min(result, theirs) : std::max(result, theirs);
      }
    }
  }
}

std::vector<std::vector<std::byte>> Communicator::all_gather(std::span<const std::byte> bytes) {
  if (size() == 1) return {{bytes.begin(), bytes.end()}};
  auto all = gather(bytes);
  bytes_sent_ += bytes.size();
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (r != rank()) bytes_received_ += all[r].size();
  }
  return all;
}

std::shared_ptr<Communicator> make_single_process() { return std::make_shared<SingleProcess>(); }

}  // namespace tamis
