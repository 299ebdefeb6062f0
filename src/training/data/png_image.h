// PNG files, read with libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace tamis::training {

// 8-bit pixels, channels interleaved; 1 channel (grey) or 3 (red, green, blue).
struct PngImage {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

// Any PNG; palettes, 16-bit samples and transparency become plain 8-bit grey or colour. Throws
// std::runtime_error if the file cannot be read or is damaged.
PngImage read_png(const std::filesystem::path& path);

// The bytes of a PNG file: 8-bit grey or colour. Throws std::runtime_error.
std::vector<std::byte> encode_png(const PngImage& image);

// Writes 8-bit grey or colour. Throws std::runtime_error.
void write_png(const std::filesystem::path& path, const PngImage& image);

}  // namespace tamis::training
