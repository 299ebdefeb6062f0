// IDX files: the format of MNIST and Fashion-MNIST.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "training/data/raw_images.h"

namespace tamis::training {

// An array of unsigned bytes with its dimensions.
struct IdxArray {
  std::vector<std::size_t> shape;
  std::vector<std::uint8_t> values;
};

// Reads one IDX file of unsigned bytes, gzip or not. Throws std::runtime_error if the header is not
// that of such a file or the size is not the one that the header says.
IdxArray read_idx(const std::filesystem::path& path);

// Reads a pair of IDX files: images [N, H, W] and labels [N].
RawImages read_idx_images(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace tamis::training
