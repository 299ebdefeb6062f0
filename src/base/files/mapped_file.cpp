#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>

#include "base/files/posix_io.h"
#include "base/threads.h"

namespace tamis::detail {

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) throw_io_error(path, "open", errno);
  struct stat status {};
  if (::fstat(file.get(), &status) < 0) throw_io_error(path, "read", errno);
  if (!S_ISREG(status.st_mode)) {
    throw std::runtime_error(concat(
        path.native(), ": cannot read: ", S_ISDIR(status.st_mode) ? "a directory" : "not a file"));
  }
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) throw_io_error(path, "map", errno);
  data_ = static_cast<std::byte*>(mapped);
  size_ = size;
#ifdef MADV_POPULATE_READ
  // Reads the whole file now, so that a disk error is an exception here and not a signal later.
  // EINVAL: a kernel before 5.14.
  constexpr std::size_t kPage = std::size_t{64} << 10U;  // the largest that systems have
  const Parts parts(size, kPage, kBytesPerThread);
  std::atomic<int> error = 0;
  parts.run([&](std::size_t part) {
    const std::size_t begin = parts.begin(part);
    if (::madvise(data_ + begin, parts.end(part) - begin, MADV_POPULATE_READ) < 0 &&
        errno != EINVAL) {
      error = errno == EFAULT ? EIO : errno;
    }
  });
  if (error != 0) {
    ::munmap(mapped, size);
    throw_io_error(path, "read", error);
  }
#endif
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace tamis::detail
