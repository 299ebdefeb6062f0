// The JSON header of a safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tamis::detail {

// In the order of the file.
using Metadata = std::vector<std::pair<std::string, std::string>>;

// One tensor: bytes [begin, end) of the data that follow the header.
struct TensorEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  Metadata metadata;
  std::vector<TensorEntry> tensors;
};

// Metadata first, no white space.
std::string format_header(const SafetensorsHeader& header);

// Strict: throws std::runtime_error, saying what was expected at which byte, for anything but the
// JSON of a safetensors header. Does not look at what names, types and offsets mean.
SafetensorsHeader parse_header(std::string_view json);

}  // namespace tamis::detail
