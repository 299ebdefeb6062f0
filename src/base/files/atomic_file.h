// AtomicFile: a file that appears under its name complete and on disk, or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/files/posix_io.h"

namespace tamis::detail {

// The name that a file of this name was to get, if it is the temporary file of a write that was
// under way; empty if it is none.
std::string_view target_of_temporary(std::string_view name);

// Where a chain of symbolic links at `path` ends, also if nothing is there yet; `path` itself if it
// is no link. For files that people name: their link stays, and its target is replaced. Throws
// std::runtime_error if the links go round in a circle.
std::filesystem::path follow_links(const std::filesystem::path& path);

// Writes go to `<path>.tmp-<process id>-<number>` in the same folder. All calls throw
// std::runtime_error, with the path and the system's reason.
class AtomicFile {
 public:
  // Memory, offset and length of a write that are multiples of this can bypass the page cache.
  static constexpr std::size_t kAlignment = 4096;

  // `size` is what the file will probably have; it only decides how to write.
  AtomicFile(std::filesystem::path path, std::uint64_t size);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Removes the temporary file unless it was committed.
  ~AtomicFile();

  void write(std::uint64_t offset, std::span<const std::byte> bytes);

  // Syncs the file, renames it to `path` (replacing what is there) and syncs the folder.
  void commit();

 private:
  void open_temporary(bool direct);
  void leave_direct_mode();
  // Reports errno.
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Descriptor folder_;
  Descriptor file_;
  bool direct_ = false;
};

}  // namespace tamis::detail
