// MappedFile: the bytes of a file, read-only, without a copy.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace tamis::detail {

// The file must not be changed in place while it is mapped; replacing it by rename is fine.
class MappedFile {
 public:
  // Throws std::runtime_error if `path` is not a regular file or cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tamis::detail
