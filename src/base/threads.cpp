#include "base/threads.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tamis::detail {

namespace {

thread_local std::size_t allowed = 1;

}  // namespace

AllowThreads::AllowThreads(std::size_t count) : previous_(std::exchange(allowed, count)) {}

AllowThreads::~AllowThreads() { allowed = previous_; }

std::size_t allowed_threads() { return allowed; }

Parts::Parts(std::size_t count, std::size_t step, std::size_t least)
    : count_(count),
      step_(step),
      num_parts_(std::clamp<std::size_t>(count / std::max(step, least), 1, allowed)) {}

std::size_t Parts::begin(std::size_t part) const {
  if (part == num_parts_) return count_;
  return count_ / step_ * part / num_parts_ * step_;
}

void Parts::run(const std::function<void(std::size_t part)>& work) const {
  if (num_parts_ == 1) return work(0);
  std::vector<std::exception_ptr> errors(num_parts_);
  const auto run_part = [&](std::size_t part) noexcept {
    try {
      work(part);
    } catch (...) {
      errors[part] = std::current_exception();
    }
  };
  const AllowThreads no_more(1);  // a part is not divided again
  std::vector<std::thread> threads;
  threads.reserve(num_parts_ - 1);
  for (std::size_t part = 1; part < num_parts_; ++part) {
    try {
      threads.emplace_back(run_part, part);
    } catch (const std::system_error&) {
      run_part(part);  // the system has no thread left for us
    }
  }
  run_part(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace tamis::detail
