#include "training/trainer/processor_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace tamis::training::processor_time_test {

TEST(ProcessorTime, IsAShareOfWhatTheProcessWanted) {
  EXPECT_DOUBLE_EQ((ProcessorTime{.running = 3.0, .waiting = 1.0}).share().value(), 0.75);
  EXPECT_FALSE(ProcessorTime{}.share());
  ProcessorTime sum{.running = 1.0, .waiting = 1.0};
  sum += ProcessorTime{.running = 2.0, .waiting = 0.0};
  EXPECT_DOUBLE_EQ(sum.share().value(), 0.75);
}

// Threads that outnumber the processors wait for one another.
TEST(ProcessorTime, FallsWhenThreadsHaveToShareAProcessor) {
  const ProcessorTime before = read_processor_time();
  if (before.running == 0.0) GTEST_SKIP() << "the kernel does not say";
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < 4 * std::thread::hardware_concurrency(); ++k) {
    threads.emplace_back([&] {
      while (!is_over) continue;
    });
  }
  // A busy machine may let them run for next to nothing at first.
  ProcessorTime time;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (time.running < 0.1 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    time = read_processor_time() - before;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  const auto share = time.share();
  ASSERT_TRUE(share);
  EXPECT_LT(*share, 0.6);
}

}  // namespace tamis::training::processor_time_test
