#include "base/files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace tamis::detail {
namespace {

// From here on a copy through the page cache costs more than waiting for the disk.
constexpr std::uint64_t kDirectFrom = std::uint64_t{32} << 20U;

bool is_aligned(std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  return (offset | bytes.size() | address) % AtomicFile::kAlignment == 0;
}

constexpr std::string_view kTemporary = ".tmp-";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string_view target_of_temporary(std::string_view name) {
  const std::size_t at = name.rfind(kTemporary);
  if (at == std::string_view::npos) return {};
  const std::string_view numbers = name.substr(at + kTemporary.size());
  const std::size_t dash = numbers.find('-');
  const bool is_ours = dash != std::string_view::npos && is_number(numbers.substr(0, dash)) &&
                       is_number(numbers.substr(dash + 1));
  return is_ours ? name.substr(0, at) : std::string_view();
}

std::filesystem::path follow_links(const std::filesystem::path& path) {
  constexpr int kMostLinks = 40;  // as the kernel's own limit
  std::filesystem::path at = path;
  for (int count = 0; count <= kMostLinks; ++count) {
    std::error_code error;
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(at, error))) return at;
    // An absolute target replaces the folder before it.
    at = at.parent_path() / std::filesystem::read_symlink(at);
  }
  throw_io_error(path, "follow its links", ELOOP);
}

AtomicFile::AtomicFile(std::filesystem::path path, std::uint64_t size) : path_(std::move(path)) {
  // Renaming would replace a device or a pipe by a file. What cannot be examined fails below.
  std::error_code error;
  const auto type = std::filesystem::status(path_, error).type();
  if (std::filesystem::exists(std::filesystem::file_status(type)) && !error &&
      type != std::filesystem::file_type::regular) {
    throw std::runtime_error(concat(path_.native(), ": cannot replace it: not a regular file"));
  }
  const std::filesystem::path parent = path_.has_parent_path() ? path_.parent_path() : ".";
  folder_.reset(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open()) throw_io_error(path_, "open its folder", errno);
  open_temporary(size >= kDirectFrom);
}

AtomicFile::~AtomicFile() {
  if (file_.is_open()) ::unlink(temporary_.c_str());
}

void AtomicFile::open_temporary(bool direct) {
  static std::atomic<std::uint64_t> counter{0};
  const std::string stem = concat(path_.native(), kTemporary, ::getpid(), "-");
  for (;;) {
    // O_EXCL: a file of this name may belong to a process of the same id in another container.
    temporary_ = concat(stem, counter.fetch_add(1));
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | (direct ? O_DIRECT : 0);
    file_.reset(retry_interrupted([&] { return ::open(temporary_.c_str(), flags, 0666); }));
    if (file_.is_open()) break;
    if (errno == EINVAL && direct) {
      // The file system cannot bypass the page cache; some create the file before they say so.
      ::unlink(temporary_.c_str());
      direct = false;
    } else if (errno != EEXIST) {
      fail("create");
    }
  }
  direct_ = direct;
}

void AtomicFile::fail(const char* what) const {
  const int error = errno;
  throw_io_error(path_, concat(what, " the temporary file ", temporary_.filename().native()),
                 error);
}

void AtomicFile::leave_direct_mode() {
  const int flags = ::fcntl(file_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT) < 0) {
    fail("change the mode of");
  }
  direct_ = false;
}

void AtomicFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (direct_ && !is_aligned(offset, bytes)) leave_direct_mode();
    const ssize_t written = retry_interrupted([&] {
      return ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (written < 0 && errno == EINVAL && direct_) {
      leave_direct_mode();
      continue;
    }
    if (written < 0) fail("write");
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (retry_interrupted([&] { return ::fsync(file_.get()); }) < 0) {
    fail("sync");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) < 0) {
    fail("replace it by");
  }
  file_.reset();
  // EINVAL: the file system has nothing to sync for a folder.
  if (retry_interrupted([&] { return ::fsync(folder_.get()); }) < 0 && errno != EINVAL) {
    throw_io_error(path_, "sync its folder", errno);
  }
}

}  // namespace tamis::detail
