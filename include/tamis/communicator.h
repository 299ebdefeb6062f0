// Communicator: what the processes of one run tell each other, between epochs, never in a step.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tamis {

enum class Reduction { sum, minimum, maximum };

// The ranks of a run, numbered from 0. Every rank makes the same calls in the same order; a call
// returns when all ranks have made it, with the same result everywhere. If a rank does not make the
// call, every other rank gets a std::runtime_error that names it, within time_limit().
//
// To connect ranks in another way, derive and write the five virtual functions. One thread only.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::size_t rank() const = 0;  // in [0, size())
  virtual std::size_t size() const = 0;  // at least 1
  virtual std::chrono::milliseconds time_limit() const = 0;

  // Replaces numbers[i] by the sum (or the least or greatest) of the ranks' numbers[i]. Integers
  // wrap around; doubles are added in the order of the ranks, so the sum does not depend on the
  // network. All ranks give equally many.
  void all_reduce(std::span<std::int64_t> numbers, Reduction reduction = Reduction::sum);
  void all_reduce(std::span<double> numbers, Reduction reduction = Reduction::sum);

  // The bytes of every rank, in the order of the ranks. Their lengths may differ.
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes);

  // What this rank has given to such calls and taken from them so far: the data alone, without what
  // the transport adds. One process sends nothing.
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }

 protected:
  // Called with size() > 1 only.
  virtual void reduce(std::span<std::int64_t> numbers, Reduction reduction) = 0;
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) = 0;

 private:
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
};

inline constexpr std::chrono::milliseconds kDefaultTimeLimit{30'000};

// For a run of one process.
std::shared_ptr<Communicator> make_single_process();

// The ranks are threads of this process: for tests and simulations.
std::vector<std::shared_ptr<Communicator>> make_thread_ranks(
    std::size_t size, std::chrono::milliseconds time_limit = kDefaultTimeLimit);

}  // namespace tamis
