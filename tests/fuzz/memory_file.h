// A file in memory that can be opened by a path, for readers that take one.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace tamis::fuzz {

class MemoryFile {
 public:
  MemoryFile() : number_(::memfd_create("tamis-fuzz", MFD_CLOEXEC)) {
    if (number_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    path_ = "/proc/self/fd/" + std::to_string(number_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(number_); }

  // Replaces what is in it.
  void write(std::string_view bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (::ftruncate(number_, 0) != 0 || ::pwrite(number_, bytes.data(), bytes.size(), 0) != size) {
      throw std::system_error(errno, std::generic_category(), "memfd");
    }
  }
  void write(std::span<const std::byte> bytes) {
    write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  const std::string& path() const { return path_; }

 private:
  int number_;
  std::string path_;
};

}  // namespace tamis::fuzz
