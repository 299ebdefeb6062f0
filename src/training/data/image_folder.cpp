#include "training/data/image_folder.h"

#include <algorithm>
#include <stdexcept>

#include "base/check.h"
#include "training/data/png_image.h"

namespace tamis::training {

namespace fs = std::filesystem;
using detail::concat;

namespace {

std::vector<fs::path> png_files(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw std::runtime_error(concat(folder.native(), ": no such folder of images"));
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".png")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void append(RawImages& images, const fs::path& path) {
  const PngImage png = read_png(path);
  if (images.count == 0) {
    images.channels = png.channels;
    images.height = png.height;
    images.width = png.width;
  }
  if (png.channels != images.channels || png.height != images.height || png.width != images.width) {
    throw std::runtime_error(concat(path.native(), ": all images must have one size, ",
                                    images.height, " x ", images.width, " x ", images.channels,
                                    ", got ", png.height, " x ", png.width, " x ", png.channels));
  }
  for (std::size_t c = 0; c < png.channels; ++c) {
    for (std::size_t p = c; p < png.pixels.size(); p += png.channels) {
      images.pixels.push_back(png.pixels[p]);
    }
  }
  ++images.count;
}

}  // namespace

std::vector<std::string> class_names(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw std::runtime_error(concat(
        folder.native(), ": no such folder; it must hold one sub-folder of PNG files per class"));
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  if (names.empty() || names.size() > 256) {
    throw std::runtime_error(concat(
        folder.native(), ": must hold 1 to 256 sub-folders, one per class, got ", names.size()));
  }
  return names;
}

RawImages read_image_folder(const fs::path& folder, const std::vector<std::string>& classes) {
  RawImages images;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    for (const fs::path& path : png_files(folder / classes[label])) {
      append(images, path);
      images.labels.push_back(static_cast<std::uint8_t>(label));
      images.files.push_back((folder.filename() / classes[label] / path.filename()).native());
    }
  }
  if (images.count == 0) {
    throw std::runtime_error(concat(folder.native(), ": no PNG files in the class folders"));
  }
  return images;
}

}  // namespace tamis::training
