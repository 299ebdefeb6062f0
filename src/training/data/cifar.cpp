#include "training/data/cifar.h"

#include <stdexcept>

#include "base/check.h"
#include "runs/json.h"
#include "training/data/files.h"
#include "training/data/png_image.h"

namespace tamis::training {

using detail::concat;

namespace {

constexpr std::size_t kSide = 32;
constexpr std::size_t kChannels = 3;
constexpr std::size_t kArea = kSide * kSide;

std::vector<std::uint8_t> read_labels(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = read_file(path);
  const runs::Json json = runs::parse_json({bytes.begin(), bytes.end()}, path.native());
  if (!json.is_array()) {
    throw std::runtime_error(concat(path.native(), ": must be a JSON list of labels"));
  }
  std::vector<std::uint8_t> labels;
  labels.reserve(json.size());
  for (const auto& value : json) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 255) {
      throw std::runtime_error(
          concat(path.native(), ": labels must be in [0, 255], got ", value.dump()));
    }
    labels.push_back(value.get<std::uint8_t>());
  }
  return labels;
}

}  // namespace

RawImages read_cifar_binary(const std::vector<std::filesystem::path>& files,
                            std::size_t label_bytes) {
  RawImages images{.channels = kChannels, .height = kSide, .width = kSide};
  const std::size_t record = label_bytes + kChannels * kArea;
  for (const auto& path : files) {
    const std::vector<std::uint8_t> bytes = read_file(path);
    if (bytes.empty() || bytes.size() % record != 0) {
      throw std::runtime_error(concat(path.native(), ": size must be a multiple of ", record,
                                      " bytes, got ", bytes.size()));
    }
    for (auto at = bytes.begin(); at != bytes.end(); at += static_cast<std::ptrdiff_t>(record)) {
      const auto pixels = at + static_cast<std::ptrdiff_t>(label_bytes);
      images.labels.push_back(*(pixels - 1));
      images.pixels.insert(images.pixels.end(), pixels, at + static_cast<std::ptrdiff_t>(record));
    }
  }
  images.count = images.labels.size();
  return images;
}

RawImages read_cifar_png(const std::vector<std::filesystem::path>& images,
                         const std::filesystem::path& labels) {
  RawImages result{.channels = kChannels, .height = kSide, .width = kSide};
  for (const auto& path : images) {
    const PngImage png = read_png(path);
    if (png.width != kArea || png.channels != kChannels) {
      throw std::runtime_error(concat(path.native(),
                                      ": must be 1024 pixels wide and in colour, got ", png.width,
                                      " and ", png.channels, " channel(s)"));
    }
    const std::size_t begin = result.pixels.size();
    result.pixels.resize(begin + png.pixels.size());
    for (std::size_t row = 0; row < png.height; ++row) {
      const std::uint8_t* from = png.pixels.data() + row * kArea * kChannels;
      std::uint8_t* to = result.pixels.data() + begin + row * kArea * kChannels;
      for (std::size_t p = 0; p < kArea; ++p) {
        for (std::size_t c = 0; c < kChannels; ++c) to[c * kArea + p] = from[p * kChannels + c];
      }
    }
    result.count += png.height;
  }
  result.labels = read_labels(labels);
  if (result.labels.size() != result.count) {
    throw std::runtime_error(concat(labels.native(), ": must have one label for each of the ",
                                    result.count, " images, got ", result.labels.size()));
  }
  return result;
}

}  // namespace tamis::training
