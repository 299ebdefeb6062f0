// The few things that the models share.
#pragma once

#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tamis::training {

// `channels` times `factor`, as a positive multiple of 8 (what vector instructions want).
inline std::int64_t scaled_channels(std::int64_t channels, double factor) {
  const auto eighths = std::llround(static_cast<double>(channels) * factor / 8.0);
  return 8 * std::max<std::int64_t>(1, eighths);
}

// A convolution without bias, for a batch norm follows; the size stays the same at stride 1.
inline torch::nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel,
                              std::int64_t stride = 1) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

}  // namespace tamis::training
