// Files of our container with other contents and right checksums: what a hostile writer makes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/safetensors.h"

namespace tamis::test {

// The parts of a file, for change.
struct ContainerParts {
  struct OwnedTensor {
    std::string name;
    std::string dtype;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
  };
  tamis::detail::Metadata metadata;  // without the checksums
  std::vector<OwnedTensor> tensors;

  explicit ContainerParts(std::span<const std::byte> file) {
    tamis::detail::SafetensorsReader reader("file", file);
    reader.verify_data();
    // The first and the last entry are the writer's own.
    metadata.assign(reader.metadata().begin() + 1, reader.metadata().end() - 1);
    for (const tamis::detail::Tensor& tensor : reader.tensors()) {
      tensors.push_back(
          {tensor.name, tensor.dtype, tensor.shape, {tensor.bytes.begin(), tensor.bytes.end()}});
    }
  }

  std::string& text(std::string_view key) {
    const auto found = std::find_if(metadata.begin(), metadata.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    return found == metadata.end() ? metadata.emplace_back(key, "").second : found->second;
  }
  OwnedTensor& tensor(std::string_view name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const OwnedTensor& tensor) { return tensor.name == name; });
  }
  // Replaces entry `at` of a tensor.
  template <typename T>
  void set(std::string_view name, std::size_t at, T value) {
    std::memcpy(tensor(name).bytes.data() + at * sizeof(T), &value, sizeof(T));
  }

  std::vector<std::byte> file() const {
    std::vector<tamis::detail::Tensor> views;
    for (const OwnedTensor& tensor : tensors) {
      views.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
    }
    const tamis::detail::SafetensorsWriter writer(metadata, views);
    std::vector<std::byte> out(static_cast<std::size_t>(writer.size()));
    writer.write([&](std::uint64_t offset, std::span<const std::byte> bytes) {
      std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(offset));
    });
    return out;
  }
};

inline std::vector<std::byte> rewritten(std::span<const std::byte> file,
                                        const std::function<void(ContainerParts&)>& edit) {
  ContainerParts parts(file);
  edit(parts);
  return parts.file();
}

}  // namespace tamis::test
