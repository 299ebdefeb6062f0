// While it lives, files of this process cannot grow beyond a size: what a full disk does to a write
// in its middle, on any machine and without rights.
#pragma once

#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace tamis::test {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    // A failed write, not the end of the process.
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
      throw std::system_error(errno, std::generic_category(), "setrlimit");
    }
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  void (*handler_)(int) = SIG_DFL;
};

}  // namespace tamis::test
