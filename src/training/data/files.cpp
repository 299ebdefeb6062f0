#include "training/data/files.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "base/check.h"
#include "base/require_memory.h"

namespace tamis::training {

namespace fs = std::filesystem;
using detail::concat;

std::vector<std::uint8_t> read_file(const fs::path& path) {
  if (!fs::is_regular_file(path)) {
    throw std::runtime_error(concat(path.native(), ": cannot read: not a file"));
  }
  // gzread passes a file that is not gzip through as it is.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
  if (!file) throw std::runtime_error(concat(path.native(), ": cannot open"));
  gzbuffer(file.get(), 1U << 18U);

  std::vector<std::uint8_t> bytes;
  std::size_t used = 0;
  int got = 0;
  do {
    const std::size_t size = std::max(std::size_t{1} << 20U, 2 * used);
    // A packed file unpacks to as much as a thousand times its size. The old bytes stay for a
    // while.
    detail::require_memory(static_cast<double>(size + used), path.native());
    bytes.resize(size);
    const auto room = static_cast<unsigned>(std::min<std::size_t>(bytes.size() - used, 1U << 30U));
    got = gzread(file.get(), bytes.data() + used, room);
    if (got > 0) used += static_cast<std::size_t>(got);
  } while (got > 0);
  int status = Z_OK;
  const char* message = gzerror(file.get(), &status);
  if (got < 0 || status != Z_OK) {
    throw std::runtime_error(concat(path.native(), ": gzip data are damaged: ", message));
  }
  bytes.resize(used);
  return bytes;
}

std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, bytes.data(), bytes.size()));
}

std::optional<fs::path> find_folder(const std::vector<fs::path>& folders,
                                    const std::vector<std::string>& names) {
  for (const fs::path& folder : folders) {
    const bool complete = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return fs::is_regular_file(resolve(folder, name));
    });
    if (complete) return folder;
  }
  return std::nullopt;
}

fs::path resolve(const fs::path& folder, std::string_view name) {
  const fs::path plain = folder / name;
  const fs::path packed = folder / concat(name, ".gz");
  return !fs::is_regular_file(plain) && fs::is_regular_file(packed) ? packed : plain;
}

}  // namespace tamis::training
