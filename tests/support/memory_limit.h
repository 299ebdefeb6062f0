// While it lives, this process gets no more memory than so much above what it has: a small machine.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace tamis::test {

class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit limit = {pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + bytes,
                          before_.rlim_max};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) {
      throw std::system_error(errno, std::generic_category(), "setrlimit");
    }
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_ = {};
};

}  // namespace tamis::test
