// RawImages: decoded pixels and labels, before they become tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tamis::training {

// `count` images of one size. No torch here, so that the readers compile quickly.
struct RawImages {
  std::size_t count = 0;
  std::size_t channels = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<std::uint8_t> pixels = {};  // [count, channels, height, width]
  std::vector<std::uint8_t> labels = {};  // [count]
  std::vector<std::string> files = {};    // [count] where every image has its own, else empty

  std::size_t pixels_per_image() const { return channels * height * width; }
};

}  // namespace tamis::training
