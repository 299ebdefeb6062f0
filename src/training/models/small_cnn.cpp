#include "training/models/small_cnn.h"

#include <torch/torch.h>

#include "training/models/layers.h"

namespace tamis::training {

namespace {

constexpr std::int64_t kBlock = 2;       // pixels of a side that become channels
constexpr std::int64_t kLargestMap = 4;  // side of what the linear layer sees

// Side of the feature map after the pixel blocks and two poolings.
std::int64_t map_side(std::int64_t side) { return std::min(kLargestMap, (side + 1) / kBlock / 4); }

std::int64_t map_size(const ModelOptions& options) {
  return map_side(options.height) * map_side(options.width);
}

}  // namespace

SmallCnn::SmallCnn(const ModelOptions& options)
    : Model("SmallCnn", options),
      conv1_(
          conv(kBlock * kBlock * options.channels, scaled_channels(32, options.width_factor), 3)),
      norm1_(scaled_channels(32, options.width_factor)),
      conv2_(conv(scaled_channels(32, options.width_factor),
                  scaled_channels(64, options.width_factor), 3)),
      norm2_(scaled_channels(64, options.width_factor)),
      classifier_(scaled_channels(64, options.width_factor) * map_size(options),
                  options.num_classes) {
  register_module("conv1", conv1_);
  register_module("norm1", norm1_);
  register_module("conv2", conv2_);
  register_module("norm2", norm2_);
  register_module("classifier", classifier_);
}

torch::Tensor SmallCnn::compute(torch::Tensor images) {
  const std::int64_t rows = map_side(images.size(2));
  const std::int64_t columns = map_side(images.size(3));
  if (images.size(2) % kBlock != 0 || images.size(3) % kBlock != 0) {
    images =
        torch::constant_pad_nd(images, {0, images.size(3) % kBlock, 0, images.size(2) % kBlock});
  }
  torch::Tensor x = torch::pixel_unshuffle(images, kBlock).contiguous(layout());
  x = torch::relu(norm1_(torch::max_pool2d(conv1_(x), 2)));
  x = torch::relu(norm2_(torch::max_pool2d(conv2_(x), 2)));
  if (x.size(2) != rows || x.size(3) != columns) x = torch::adaptive_avg_pool2d(x, {rows, columns});
  return x.flatten(1);
}

}  // namespace tamis::training
