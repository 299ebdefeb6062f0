// The little that atomic_file and mapped_file share: file descriptors and errors of system calls.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "base/check.h"

namespace tamis::detail {

// Owns an open file; negative if none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  bool is_open() const { return number_ >= 0; }
  int get() const { return number_; }
  void reset(int number = -1) {
    if (is_open()) ::close(number_);
    number_ = number;
  }

 private:
  int number_;
};

// Throws std::runtime_error "<path>: cannot <what>: <reason>".
[[noreturn]] inline void throw_io_error(const std::filesystem::path& path, std::string_view what,
                                        int error) {
  throw std::runtime_error(
      concat(path.native(), ": cannot ", what, ": ", std::generic_category().message(error)));
}

// Calls a system function again while signals interrupt it.
template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace tamis::detail
