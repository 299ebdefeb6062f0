#include "training/data/batch.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "base/check.h"

namespace tamis::training {

namespace {

// splitmix64's finaliser (Steele, Lea and Flood).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// What happens to one sample. Row y of the result is row y + top of the image, or black.
struct Transform {
  std::int64_t top = 0;
  std::int64_t left = 0;
  bool flip = false;
  bool mirrors_border = false;
};

Transform draw(const Augmentation& options, std::uint64_t epoch, std::uint64_t index) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
  const std::uint64_t bits =
      mix(mix(mix(options.seed + kGolden) + epoch + kGolden) + index + kGolden);
  const auto positions = static_cast<std::uint64_t>(2 * options.padding + 1);
  const auto offset = [&](std::uint64_t random) {  // random has 24 bits; the bias is below 1e-5
    return static_cast<std::int64_t>((random * positions) >> 24U) - options.padding;
  };
  constexpr std::uint64_t kMask = (1U << 24U) - 1;
  return {.top = offset(bits & kMask),
          .left = offset((bits >> 24U) & kMask),
          .flip = options.flip && (bits >> 63U) != 0,
          .mirrors_border = options.mirrors_border};
}

// Maps a byte to its normalised value, per channel.
using Lookup = std::vector<std::array<float, 256>>;

Lookup make_lookup(const Dataset& data) {
  Lookup lookup(static_cast<std::size_t>(data.channels()));
  for (std::size_t c = 0; c < lookup.size(); ++c) {
    for (std::size_t v = 0; v < 256; ++v) {
      lookup[c][v] = (static_cast<float>(v) / 255.0F - data.mean[c]) / data.stddev[c];
    }
  }
  return lookup;
}

struct Shape {
  std::int64_t channels, height, width;
  std::int64_t size() const { return channels * height * width; }
};

// -1 is 1, and `side` is side - 2: the row at the edge is not repeated.
std::int64_t mirrored(std::int64_t place, std::int64_t side) {
  const std::int64_t inside = place < 0 ? -place : place >= side ? 2 * side - 2 - place : place;
  return std::clamp<std::int64_t>(inside, 0, side - 1);
}

void copy_mirrored(const std::uint8_t* from, float* to, const Shape& shape, const Lookup& lookup,
                   const Transform& transform) {
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    const auto& values = lookup[static_cast<std::size_t>(c)];
    for (std::int64_t y = 0; y < shape.height; ++y, to += shape.width) {
      const std::int64_t row = mirrored(y + transform.top, shape.height);
      const std::uint8_t* pixels = from + (c * shape.height + row) * shape.width;
      for (std::int64_t x = 0; x < shape.width; ++x) {
        to[x] = values[pixels[mirrored(x + transform.left, shape.width)]];
      }
      if (transform.flip) std::reverse(to, to + shape.width);
    }
  }
}

void copy_image(const std::uint8_t* from, float* to, const Shape& shape, const Lookup& lookup,
                const Transform& transform) {
  // Columns [begin, end) of the result lie inside the image.
  const std::int64_t begin = std::clamp<std::int64_t>(-transform.left, 0, shape.width);
  const std::int64_t end =
      std::clamp<std::int64_t>(shape.width - transform.left, begin, shape.width);
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    const auto& values = lookup[static_cast<std::size_t>(c)];
    for (std::int64_t y = 0; y < shape.height; ++y, to += shape.width) {
      const std::int64_t row = y + transform.top;
      if (row < 0 || row >= shape.height) {
        std::fill(to, to + shape.width, values[0]);
        continue;
      }
      const std::uint8_t* pixels = from + (c * shape.height + row) * shape.width;
      std::fill(to, to + begin, values[0]);
      for (std::int64_t x = begin; x < end; ++x) to[x] = values[pixels[x + transform.left]];
      std::fill(to + end, to + shape.width, values[0]);
      if (transform.flip) std::reverse(to, to + shape.width);
    }
  }
}

Batch make(const Dataset& data, std::span<const SampleIndex> indices,
           const Augmentation* augmentation, std::uint64_t epoch) {
  for (const SampleIndex index : indices) {
    if (index < 0 || static_cast<std::size_t>(index) >= data.size()) {
      throw std::out_of_range(
          detail::concat("make_batch: index must be in [0, ", data.size(), "), got ", index));
    }
  }
  const auto count = static_cast<std::int64_t>(indices.size());
  const Shape shape{data.channels(), data.height(), data.width()};
  const Lookup lookup = make_lookup(data);
  Batch batch{torch::empty({count, shape.channels, shape.height, shape.width}),
              torch::empty({count}, torch::kInt64)};
  const std::uint8_t* from = data.images.data_ptr<std::uint8_t>();
  const std::int64_t* labels = data.labels.data_ptr<std::int64_t>();
  float* to = batch.data.data_ptr<float>();
  std::int64_t* targets = batch.target.data_ptr<std::int64_t>();
  constexpr std::int64_t kGrain = 32;  // images for which another thread is worth waking
  at::parallel_for(0, count, kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const SampleIndex index = indices[static_cast<std::size_t>(i)];
      const Transform transform =
          augmentation != nullptr ? draw(*augmentation, epoch, static_cast<std::uint64_t>(index))
                                  : Transform{};
      const auto copy = transform.mirrors_border ? copy_mirrored : copy_image;
      copy(from + index * shape.size(), to + i * shape.size(), shape, lookup, transform);
      targets[i] = labels[index];
    }
  });
  return batch;
}

}  // namespace

Batch make_batch(const Dataset& data, std::span<const SampleIndex> indices) {
  return make(data, indices, nullptr, 0);
}

Batch make_batch(const Dataset& data, std::span<const SampleIndex> indices,
                 const Augmentation& augmentation, std::uint64_t epoch) {
  detail::require(augmentation.padding >= 0, "make_batch", "padding", "at least 0",
                  augmentation.padding);
  return make(data, indices, &augmentation, epoch);
}

}  // namespace tamis::training
