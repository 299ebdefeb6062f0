// Files and folders in memory, for readers that take a path, and how a harness calls them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <stdexcept>
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

// A folder that is gone when the program ends, in memory where the system has such a place.
class MemoryFolder {
 public:
  MemoryFolder() {
    std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    name += "/tamis-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    path_ = name;
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// An input may be refused, which is a std::runtime_error; anything else is a finding.
template <typename Call>
void attempt(Call call) {
  try {
    call();
  } catch (const std::runtime_error&) {
  }
}

}  // namespace tamis::fuzz
