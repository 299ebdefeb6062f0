// make_communicator: a process group that the program made is as good as tamis's own.
#include "tamis/libtorch/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace tamis::libtorch::communicator_test {

constexpr int kGroupSize = 3;

// Every thread is a rank of one Gloo group.
void run_ranks(const std::function<void(c10::intrusive_ptr<c10d::Backend>)>& body) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kGroupSize; ++rank) {
    threads.emplace_back([&, rank] {
      auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(20));
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
      body(c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, kGroupSize, options));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void expect_all_calls(Communicator& communicator) {
  const std::size_t rank = communicator.rank();
  ASSERT_EQ(communicator.size(), static_cast<std::size_t>(kGroupSize));

  std::vector<std::int64_t> sums = {static_cast<std::int64_t>(rank), 1, -5};
  communicator.all_reduce(sums);
  EXPECT_EQ(sums, (std::vector<std::int64_t>{3, 3, -15}));
  std::int64_t least = 10 - static_cast<std::int64_t>(rank);
  communicator.all_reduce(std::span(&least, 1), Reduction::minimum);
  EXPECT_EQ(least, 8);
  std::vector<double> fractions = {0.1 * static_cast<double>(rank)};
  communicator.all_reduce(fractions);
  EXPECT_EQ(fractions[0], 0.0 + 0.1 + 0.2);

  const std::string text(5 * rank, static_cast<char>('a' + rank));  // rank 0 has nothing to say
  const auto all = communicator.all_gather(std::as_bytes(std::span(text)));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kGroupSize));
  EXPECT_TRUE(all[0].empty());
  ASSERT_EQ(all[2].size(), 10U);
  EXPECT_EQ(std::memcmp(all[2].data(), "cccccccccc", 10), 0);
}

TEST(GivenGroup, OfABackendMakesEveryCall) {
  run_ranks([](const auto& backend) { expect_all_calls(*make_communicator(backend)); });
}

TEST(GivenGroup, OfAProcessGroupMakesEveryCall) {
  run_ranks([](const c10::intrusive_ptr<c10d::Backend>& backend) {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(backend->getRank(), backend->getSize());
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, backend);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    expect_all_calls(*make_communicator(group));
  });
}

TEST(GivenGroup, IsNotNull) {
  EXPECT_THROW(make_communicator(c10::intrusive_ptr<c10d::Backend>()), std::invalid_argument);
}

}  // namespace tamis::libtorch::communicator_test
