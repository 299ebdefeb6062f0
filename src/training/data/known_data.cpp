#include "training/data/known_data.h"

#include <algorithm>
#include <stdexcept>

#include "base/check.h"
#include "training/data/cifar.h"
#include "training/data/files.h"
#include "training/data/idx.h"

namespace tamis::training {

namespace fs = std::filesystem;
using detail::concat;

namespace {

constexpr std::string_view kSystemFolder = "/usr/share/datasets";

// One way in which a data set is stored: its sub-folder and the files of a split.
struct StoredLayout {
  std::string folder;
  std::vector<std::string> images;
  std::string labels;           // empty: the labels are in the image files
  std::size_t label_bytes = 0;  // of a record, when they are

  std::vector<std::string> names() const {
    std::vector<std::string> all = images;
    if (!labels.empty()) all.push_back(labels);
    return all;
  }
};

std::vector<std::string> numbered(std::string_view suffix) {
  std::vector<std::string> names;
  for (int i = 1; i <= 5; ++i) names.push_back(concat("data_batch_", i, suffix));
  return names;
}

std::vector<StoredLayout> layouts(std::string_view name, Split split) {
  const bool train = split == Split::train;
  if (name == "cifar10") {
    return {{.folder = "cifar10",
             .images = train ? numbered(".png") : std::vector<std::string>{"test_batch.png"},
             .labels = train ? "train_lables.json" : "test_lables.json"},
            {.folder = "cifar-10-batches-bin",
             .images = train ? numbered(".bin") : std::vector<std::string>{"test_batch.bin"},
             .labels = {},
             .label_bytes = 1}};
  }
  if (name == "cifar100") {
    return {{.folder = "cifar-100-binary",
             .images = {train ? "train.bin" : "test.bin"},
             .labels = {},
             .label_bytes = 2}};
  }
  const std::string_view prefix = train ? "train" : "t10k";
  return {{.folder = std::string(name),
           .images = {concat(prefix, "-images-idx3-ubyte")},
           .labels = concat(prefix, "-labels-idx1-ubyte")}};
}

RawImages read_layout(const StoredLayout& layout, const fs::path& folder) {
  std::vector<fs::path> images;
  for (const std::string& name : layout.images) images.push_back(resolve(folder, name));
  if (layout.label_bytes > 0) return read_cifar_binary(images, layout.label_bytes);
  const fs::path labels = resolve(folder, layout.labels);
  if (labels.extension() == ".json") return read_cifar_png(images, labels);
  return read_idx_images(images.front(), labels);
}

const KnownSplit& split_of(const KnownData& known, Split split) {
  return split == Split::train ? known.train : known.test;
}

}  // namespace

std::span<const KnownData> known_data() {
  static const std::vector<KnownData> all{
      {.name = "fashion-mnist",
       .title = "Fashion-MNIST",
       .num_classes = 10,
       .classes = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                   "Sneaker", "Bag", "Ankle boot"},
       .train = {60000, 0xae65dccdU, 0x2ed6e46aU},
       .test = {10000, 0x12728439U, 0x242bc73fU},
       .mean = {0.2860F},
       .stddev = {0.3530F},
       .advice =
           "install it with `apt-get install dataset-fashion-mnist`, or put the four IDX files "
           "into data/fashion-mnist"},
      {.name = "mnist",
       .title = "MNIST",
       .num_classes = 10,
       .train = {60000, 0xf3639b56U, 0xba07e8efU},
       .test = {10000, 0xe4ca5f57U, 0xee8604d9U},
       .mean = {0.1307F},
       .stddev = {0.3081F},
       .advice = "fetch it with `make data`, or put the four IDX files into data/mnist"},
      {.name = "cifar10",
       .title = "CIFAR-10",
       .num_classes = 10,
       .classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
                   "truck"},
       .train = {50000, 0xe26e264dU, 0x4ee6ac62U},
       .test = {10000, 0x6e8778c0U, 0xbada58c9U},
       .mean = {0.4914F, 0.4822F, 0.4465F},
       .stddev = {0.2470F, 0.2435F, 0.2616F},
       .advice = "fetch it with `make data`, or unpack the official binary version into data/"
                 "cifar-10-batches-bin"},
      {.name = "cifar100",
       .title = "CIFAR-100",
       .num_classes = 100,
       .train = {50000, std::nullopt, std::nullopt},
       .test = {10000, std::nullopt, std::nullopt},
       .mean = {0.5071F, 0.4865F, 0.4409F},
       .stddev = {0.2673F, 0.2564F, 0.2762F},
       .advice = "unpack the official binary version into data/cifar-100-binary"}};
  return all;
}

std::vector<std::string> data_names() {
  std::vector<std::string> names;
  for (const KnownData& known : known_data()) names.emplace_back(known.name);
  names.emplace_back("folder");
  return names;
}

const KnownData& find_known_data(std::string_view name) {
  return detail::find_named(known_data(), "data: name", name, "folder");
}

RawImages read_known_data(const KnownData& known, Split split, const fs::path& data_dir) {
  std::vector<fs::path> roots{data_dir.empty() ? fs::path("data") : data_dir};
  if (data_dir.empty() && known.name == "fashion-mnist") roots.emplace_back(kSystemFolder);

  std::string searched;
  for (const fs::path& root : roots) {
    for (const StoredLayout& layout : layouts(known.name, split)) {
      const fs::path own = root / layout.folder;
      if (const auto folder = find_folder({own, root}, layout.names())) {
        return read_layout(layout, *folder);
      }
      searched += concat(searched.empty() ? "" : ", ", own.native());
    }
  }
  throw std::runtime_error(
      concat(known.title, ": files not found in ", searched, "; ", known.advice));
}

void verify(const RawImages& images, const KnownData& known, Split split) {
  const KnownSplit& expected = split_of(known, split);
  const std::string_view part = split == Split::train ? "training" : "test";
  if (images.count != expected.count) {
    throw std::runtime_error(concat(known.title, ": ", part, " set must have ", expected.count,
                                    " samples, got ", images.count));
  }
  const auto largest = std::max_element(images.labels.begin(), images.labels.end());
  if (*largest >= known.num_classes) {
    throw std::runtime_error(
        concat(known.title, ": labels must be below ", known.num_classes, ", got ", int{*largest}));
  }
  if ((expected.pixels_crc && crc32(images.pixels) != *expected.pixels_crc) ||
      (expected.labels_crc && crc32(images.labels) != *expected.labels_crc)) {
    throw std::runtime_error(concat(known.title, ": the files of the ", part,
                                    " set are damaged (their checksum is wrong); delete them and ",
                                    known.advice));
  }
}

}  // namespace tamis::training
