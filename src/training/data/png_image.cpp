#include "training/data/png_image.h"

#include <png.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "base/check.h"

namespace tamis::training {

namespace {

constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 28U;

// libpng's simplified interface reports errors as values, so no longjmp crosses our destructors.
struct Reader {
  png_image image{};
  Reader() { image.version = PNG_IMAGE_VERSION; }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_image_free(&image); }
};

// Size and kind of an image that is to be written.
void describe(const PngImage& image, const char* who, png_image& header) {
  detail::require(image.channels == 1 || image.channels == 3, who, "channels", "1 or 3",
                  image.channels);
  detail::require(image.pixels.size() == image.height * image.width * image.channels, who, "pixels",
                  "height * width * channels bytes", image.pixels.size());
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
}

}  // namespace

PngImage read_png(const std::filesystem::path& path) {
  Reader reader;
  png_image& image = reader.image;
  const auto fail = [&] {
    throw std::runtime_error(detail::concat(path.native(), ": cannot read PNG: ", image.message));
  };
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) fail();
  // A file of a few bytes can claim any size: deflate makes at most 1032 bytes of one, and a byte
  // holds at most eight pixels.
  const std::uint64_t claimed = std::uint64_t{image.width} * image.height;
  const std::uint64_t possible = 8 * 1032 * std::filesystem::file_size(path);
  if (claimed > std::min(possible, kMostPixels)) {
    throw std::runtime_error(detail::concat(
        path.native(), ": cannot read PNG: ", image.width, " x ", image.height, " pixels are ",
        claimed > kMostPixels ? "more than 2^28" : "more than a file of its size can hold"));
  }
  const bool color = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  image.format = color ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  PngImage result{.height = image.height,
                  .width = image.width,
                  .channels = color ? std::size_t{3} : std::size_t{1},
                  .pixels = std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  // Where there is transparency, the image is laid over black.
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&image, &black, result.pixels.data(), 0, nullptr) == 0) fail();
  if ((image.warning_or_error & PNG_IMAGE_ERROR) != 0) fail();
  return result;
}

std::vector<std::byte> encode_png(const PngImage& image) {
  Reader writer;
  describe(image, "encode_png", writer.image);
  const auto write = [&](void* memory, png_alloc_size_t& size) {
    if (png_image_write_to_memory(&writer.image, memory, &size, 0, image.pixels.data(), 0,
                                  nullptr) == 0) {
      throw std::runtime_error(detail::concat("cannot make PNG: ", writer.image.message));
    }
  };
  png_alloc_size_t size = 0;
  write(nullptr, size);
  std::vector<std::byte> bytes(size);
  write(bytes.data(), size);
  bytes.resize(size);
  return bytes;
}

void write_png(const std::filesystem::path& path, const PngImage& image) {
  Reader writer;
  describe(image, "write_png", writer.image);
  if (png_image_write_to_file(&writer.image, path.c_str(), 0, image.pixels.data(), 0, nullptr) ==
      0) {
    throw std::runtime_error(
        detail::concat(path.native(), ": cannot write PNG: ", writer.image.message));
  }
}

}  // namespace tamis::training
