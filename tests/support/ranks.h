// Several ranks of a run as threads of a test.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tamis/communicator.h"

namespace tamis::test {

// Calls `body` once per rank, side by side. Returns what each rank threw, empty where nothing.
inline std::vector<std::string> errors_of_ranks(
    std::size_t num_ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& body,
    std::chrono::milliseconds time_limit = std::chrono::seconds(60)) {
  const auto ranks = make_thread_ranks(num_ranks, time_limit);
  std::vector<std::string> errors(num_ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < num_ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        body(ranks[r]);
      } catch (const std::exception& error) {
        errors[r] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// The same where no rank may throw: the first error ends the test.
inline void run_ranks(std::size_t num_ranks,
                      const std::function<void(const std::shared_ptr<Communicator>&)>& body) {
  for (const std::string& error : errors_of_ranks(num_ranks, body)) {
    if (!error.empty()) throw std::runtime_error(error);
  }
}

// One of very many ranks, of which the others have nothing to say.
class LonelyRank final : public Communicator {
 public:
  LonelyRank(std::size_t rank, std::size_t size) : rank_(rank), size_(size) {}
  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }
  std::chrono::milliseconds time_limit() const override { return kDefaultTimeLimit; }

 private:
  void reduce(std::span<std::int64_t>, Reduction) override {}
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
    return {{bytes.begin(), bytes.end()}};
  }
  std::size_t rank_;
  std::size_t size_;
};

}  // namespace tamis::test
