#include "training/data/dataset.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "base/check.h"
#include "training/data/image_folder.h"
#include "training/data/known_data.h"

namespace tamis::training {

namespace {

Dataset to_dataset(const RawImages& raw) {
  const auto extent = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  Dataset data;
  data.images =
      torch::empty({extent(raw.count), extent(raw.channels), extent(raw.height), extent(raw.width)},
                   torch::kUInt8);
  std::memcpy(data.images.data_ptr<std::uint8_t>(), raw.pixels.data(), raw.pixels.size());
  data.labels = torch::empty({extent(raw.count)}, torch::kInt64);
  std::copy(raw.labels.begin(), raw.labels.end(), data.labels.data_ptr<std::int64_t>());
  data.files = raw.files;
  return data;
}

// Mean and deviation of the pixels in [0, 1] per channel, from a histogram: exact and one pass.
void measure(const RawImages& raw, Dataset& data) {
  const std::size_t area = raw.height * raw.width;
  for (std::size_t c = 0; c < raw.channels; ++c) {
    std::array<std::uint64_t, 256> histogram{};
    for (std::size_t i = 0; i < raw.count; ++i) {
      const std::uint8_t* plane = raw.pixels.data() + (i * raw.channels + c) * area;
      for (std::size_t p = 0; p < area; ++p) ++histogram[plane[p]];
    }
    double sum = 0.0;
    double squares = 0.0;
    for (std::size_t v = 0; v < 256; ++v) {
      const double value = static_cast<double>(v) / 255.0;
      sum += value * static_cast<double>(histogram[v]);
      squares += value * value * static_cast<double>(histogram[v]);
    }
    const auto count = static_cast<double>(raw.count * area);
    const double mean = sum / count;
    const double variance = std::max(0.0, squares / count - mean * mean);
    data.mean.push_back(static_cast<float>(mean));
    // A constant channel carries nothing; dividing by 1 keeps it finite.
    data.stddev.push_back(variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0F);
  }
}

DataSplits load_folder(const std::filesystem::path& folder) {
  const std::vector<std::string> classes = class_names(folder / "train");
  const RawImages train = read_image_folder(folder / "train", classes);
  const RawImages test = read_image_folder(folder / "test", classes);
  if (train.channels != test.channels || train.height != test.height || train.width != test.width) {
    throw std::runtime_error(
        detail::concat(folder.native(), ": training and test images must have one size"));
  }
  DataSplits splits{.train = to_dataset(train), .test = to_dataset(test)};
  measure(train, splits.train);
  splits.test.mean = splits.train.mean;
  splits.test.stddev = splits.train.stddev;
  for (Dataset* data : {&splits.train, &splits.test}) {
    data->name = folder.filename().string();
    data->num_classes = static_cast<std::int64_t>(classes.size());
    data->classes = classes;
  }
  return splits;
}

Dataset load_split(const KnownData& known, Split split, const DataOptions& options) {
  const RawImages raw = read_known_data(known, split, options.data_dir);
  if (options.verify) verify(raw, known, split);
  Dataset data = to_dataset(raw);
  data.name = known.name;
  data.num_classes = static_cast<std::int64_t>(known.num_classes);
  data.classes.assign(known.classes.begin(), known.classes.end());
  data.mean = known.mean;
  data.stddev = known.stddev;
  return data;
}

}  // namespace

Dataset Dataset::select(const torch::Tensor& places) const {
  Dataset part = *this;
  part.images = images.index_select(0, places);
  part.labels = labels.index_select(0, places);
  part.indices = indices.defined() ? indices.index_select(0, places) : places;
  if (true_labels.defined()) part.true_labels = true_labels.index_select(0, places);
  if (files.empty()) return part;
  part.files.clear();
  const auto numbers = places.accessor<std::int64_t, 1>();
  for (std::int64_t k = 0; k < places.size(0); ++k) {
    part.files.push_back(files[static_cast<std::size_t>(numbers[k])]);
  }
  return part;
}

Dataset Dataset::first(std::size_t count) const {
  Dataset part = *this;
  const auto end = static_cast<std::int64_t>(std::min(count, size()));
  part.images = images.slice(0, 0, end);
  part.labels = labels.slice(0, 0, end);
  return part;
}

DataSplits load_data(const std::string& name, const DataOptions& options) {
  if (name == "folder") {
    return load_folder(options.data_dir.empty() ? std::filesystem::path("data") : options.data_dir);
  }
  const KnownData& known = find_known_data(name);
  return {.train = load_split(known, Split::train, options),
          .test = load_split(known, Split::test, options)};
}

}  // namespace tamis::training
