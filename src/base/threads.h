// Threads for the parts of a plan, or of loading a state, that can be divided. They end with the
// call that started them: none is left while a training runs.
#pragma once

#include <cstddef>
#include <functional>

namespace tamis::detail {

// As long as it lives, work that this thread divides may use `count` threads, itself included.
// Without it one.
class AllowThreads {
 public:
  explicit AllowThreads(std::size_t count);
  ~AllowThreads();
  AllowThreads(const AllowThreads&) = delete;
  AllowThreads& operator=(const AllowThreads&) = delete;

 private:
  std::size_t previous_;
};

std::size_t allowed_threads();

// Work on this many samples is worth a thread of its own.
constexpr std::size_t kSamplesPerThread = std::size_t{1} << 20U;

// And so are this many bytes that are read once.
constexpr std::size_t kBytesPerThread = 4 * kSamplesPerThread;

// The items [0, count) cut into contiguous parts of about equal length, one per allowed thread, but
// of at least `least` items each. All parts begin at multiples of `step`.
class Parts {
 public:
  Parts(std::size_t count, std::size_t step, std::size_t least);

  std::size_t size() const { return num_parts_; }
  std::size_t begin(std::size_t part) const;
  std::size_t end(std::size_t part) const { return begin(part + 1); }

  // Calls work(part) for every part, side by side, and waits for all. Throws what the first part
  // that failed has thrown. What the work writes may not depend on the order of the parts.
  void run(const std::function<void(std::size_t part)>& work) const;

 private:
  std::size_t count_;
  std::size_t step_;
  std::size_t num_parts_;
};

}  // namespace tamis::detail
