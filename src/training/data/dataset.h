// Dataset: images and labels in memory.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tamis::training {

// One split. Pixels stay bytes; batches are normalised when they are made.
struct Dataset {
  std::string name;
  torch::Tensor images;  // uint8 [N, C, H, W]
  torch::Tensor labels;  // int64 [N]
  std::int64_t num_classes = 0;
  // Of the training pixels in [0, 1], one per channel.
  std::vector<float> mean;
  std::vector<float> stddev;
  // Who the samples are. What is not known, or goes without saying, is empty.
  std::vector<std::string> classes = {};  // names, by label
  std::vector<std::string> files = {};    // one per sample, relative to the data set's folder
  torch::Tensor indices = {};      // int64 [N], in the whole data set; undefined: this is the whole
  torch::Tensor true_labels = {};  // int64 [N]; undefined unless labels were made wrong on purpose

  std::size_t size() const { return static_cast<std::size_t>(images.size(0)); }
  std::int64_t channels() const { return images.size(1); }
  std::int64_t height() const { return images.size(2); }
  std::int64_t width() const { return images.size(3); }

  // The samples at these places, int64, in this order.
  Dataset select(const torch::Tensor& places) const;
  // The first `count` samples, or all if there are not as many. Shares the memory.
  Dataset first(std::size_t count) const;
};

struct DataSplits {
  Dataset train;
  Dataset test;
};

struct DataOptions {
  // Where to look first. Empty: ./data, then the system's own folder.
  std::filesystem::path data_dir = {};
  // Refuse files that are not the published ones: other counts, other checksums.
  bool verify = true;
};

// `name` is fashion-mnist, mnist, cifar10, cifar100, or folder: data_dir/train/<class>/*.png and
// data_dir/test/<class>/*.png. Throws std::invalid_argument for another name and
// std::runtime_error, saying what to install or where to put the files, if they are missing or
// damaged.
DataSplits load_data(const std::string& name, const DataOptions& options = {});

}  // namespace tamis::training
