// Readers of images: PNG made of chunks with right checksums, IDX, CIFAR, and any bytes.
#include <zlib.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "memory_file.h"
#include "source.h"
#include "training/data/cifar.h"
#include "training/data/idx.h"
#include "training/data/png_image.h"

namespace {

using tamis::fuzz::attempt;
using tamis::fuzz::Source;

std::string big_endian(std::uint32_t value) {
  std::string text(4, '\0');
  for (std::size_t k = 0; k < 4; ++k) text[k] = static_cast<char>(value >> (24 - 8 * k));
  return text;
}

std::string chunk(const std::string& name, const std::string& data) {
  const std::string body = name + data;
  const auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(crc));
}

std::string deflated(const std::string& data) {
  uLongf size = ::compressBound(data.size());
  std::string packed(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
             reinterpret_cast<const Bytef*>(data.data()), data.size());
  packed.resize(size);
  return packed;
}

std::string make_png(Source& source) {
  constexpr std::uint32_t kSizes[] = {1, 2, 3, 8, 32, 0, 255, 65536, 1000000, 0x7FFFFFFF};
  constexpr char kDepths[] = {8, 1, 2, 4, 16, 0, 3};
  constexpr char kColors[] = {0, 2, 3, 4, 6, 1, 7};
  const std::uint32_t width = source.pick(kSizes);
  const std::uint32_t height = source.pick(kSizes);
  std::string header = big_endian(width) + big_endian(height);
  header += source.pick(kDepths);
  header += source.pick(kColors);
  header += static_cast<char>(source.byte() % 16 == 1);  // compression
  header += static_cast<char>(source.byte() % 16 == 1);  // filter
  header += static_cast<char>(source.byte() % 3);        // interlace
  std::string png = "\x89PNG\r\n\x1a\n" + chunk("IHDR", header);
  const std::size_t extras = source.below(4);
  for (std::size_t k = 0; k < extras; ++k) {
    constexpr const char* kNames[] = {"PLTE", "tRNS", "gAMA", "sRGB",
                                      "tEXt", "iCCP", "IHDR", "bKGD"};
    png += chunk(source.pick(kNames), source.text());
  }
  std::string pixels(source.below(5000), static_cast<char>(source.byte()));
  pixels += source.text();
  png += chunk("IDAT", source.byte() % 8 == 1 ? pixels : deflated(pixels));
  return source.byte() % 8 == 1 ? png : png + chunk("IEND", "");
}

std::string make_idx(Source& source) {
  constexpr std::uint32_t kExtents[] = {1, 2, 3, 0, 28, 256, 0x7FFFFFFF, 0xFFFFFFFF};
  std::string file(2, '\0');
  file += static_cast<char>(source.byte() % 8 == 1 ? source.byte() : 8);
  const std::size_t dimensions = source.below(6);
  file += static_cast<char>(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) file += big_endian(source.pick(kExtents));
  return file + source.rest();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static tamis::fuzz::MemoryFile file;
  Source source(data, size);
  const std::uint8_t choice = source.byte() % 4;
  file.write(choice == 0 ? make_png(source) : choice == 1 ? make_idx(source) : source.rest());
  if (choice != 1) {
    attempt([&] {
      const auto image = tamis::training::read_png(file.path());
      if (image.pixels.size() != image.height * image.width * image.channels) std::abort();
    });
  }
  if (choice != 0) {
    attempt([&] { tamis::training::read_idx(file.path()); });
    attempt([&] { tamis::training::read_idx_images(file.path(), file.path()); });
    attempt([&] { tamis::training::read_cifar_binary({file.path()}, 1); });
    attempt([&] { tamis::training::read_cifar_png({}, file.path()); });  // its labels, as JSON
  }
  return 0;
}
