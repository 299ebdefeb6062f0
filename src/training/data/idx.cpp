// Format: two zero bytes, the type (8: unsigned byte), the number of dimensions, then each
// dimension as a big-endian 32-bit number, then the values, last dimension fastest.
#include "training/data/idx.h"

#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "training/data/files.h"

namespace tamis::training {

using detail::concat;

IdxArray read_idx(const std::filesystem::path& path) {
  constexpr std::uint8_t kUnsignedByte = 8;
  std::vector<std::uint8_t> bytes = read_file(path);
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != kUnsignedByte ||
      bytes[3] < 1 || bytes[3] > 4) {
    throw std::runtime_error(concat(path.native(), ": not an IDX file of unsigned bytes"));
  }
  const std::size_t num_dimensions = bytes[3];
  const std::size_t header = 4 + 4 * num_dimensions;
  if (bytes.size() < header) {
    throw std::runtime_error(
        concat(path.native(), ": IDX header is cut short, size ", bytes.size()));
  }
  IdxArray array;
  std::size_t count = 1;
  for (std::size_t d = 0; d < num_dimensions; ++d) {
    std::size_t extent = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) extent = extent * 256 + bytes[4 + 4 * d + byte];
    array.shape.push_back(extent);
    if (extent != 0 && count > bytes.size() / extent) {
      throw std::runtime_error(concat(path.native(), ": cut short, size ", bytes.size()));
    }
    count *= extent;
  }
  if (bytes.size() != header + count) {
    throw std::runtime_error(concat(path.native(), ": size must be ", header + count,
                                    " by its header, got ", bytes.size()));
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  array.values = std::move(bytes);
  return array;
}

RawImages read_idx_images(const std::filesystem::path& images,
                          const std::filesystem::path& labels) {
  IdxArray pixels = read_idx(images);
  IdxArray classes = read_idx(labels);
  if (pixels.shape.size() != 3) {
    throw std::runtime_error(
        concat(images.native(), ": must have 3 dimensions, got ", pixels.shape.size()));
  }
  if (classes.shape.size() != 1 || classes.shape[0] != pixels.shape[0]) {
    throw std::runtime_error(concat(labels.native(), ": must have one label for each of the ",
                                    pixels.shape[0], " images, got ", classes.values.size()));
  }
  return {.count = pixels.shape[0],
          .channels = 1,
          .height = pixels.shape[1],
          .width = pixels.shape[2],
          .pixels = std::move(pixels.values),
          .labels = std::move(classes.values)};
}

}  // namespace tamis::training
