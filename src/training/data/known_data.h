// The data sets that are known by name: their sizes, checksums, and where their files are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/data/raw_images.h"

namespace tamis::training {

enum class Split { train, test };

// What is known of one split: how many samples, and the CRC-32 of its pixels [N, C, H, W] and of
// its labels, one byte each. Checksums are of the content, so they hold whatever the file format
// is.
struct KnownSplit {
  std::size_t count = 0;
  std::optional<std::uint32_t> pixels_crc;
  std::optional<std::uint32_t> labels_crc;
};

struct KnownData {
  std::string_view name;
  std::string_view title;
  std::size_t num_classes = 0;
  std::vector<std::string_view> classes = {};  // names, by label; empty where numbers do as well
  KnownSplit train;
  KnownSplit test;
  // Of the training pixels in [0, 1], one per channel.
  std::vector<float> mean;
  std::vector<float> stddev;
  // What to tell somebody who does not have the files.
  std::string_view advice;
};

// fashion-mnist, mnist, cifar10, cifar100.
std::span<const KnownData> known_data();

// Names that load_data understands, for help texts: these and "folder".
std::vector<std::string> data_names();

// Throws std::invalid_argument, naming what exists, if there is no such name.
const KnownData& find_known_data(std::string_view name);

// Reads one split from the first place that has its files: `data_dir` if it is not empty, otherwise
// ./data and, for Fashion-MNIST, Debian's package; in each of them a folder of the data set's own
// name first. Throws std::runtime_error that says where it looked and what to do if there is none.
RawImages read_known_data(const KnownData& known, Split split,
                          const std::filesystem::path& data_dir);

// Throws std::runtime_error unless `images` are exactly the known ones.
void verify(const RawImages& images, const KnownData& known, Split split);

}  // namespace tamis::training
