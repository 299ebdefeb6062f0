// Edits of a file of our container that keep its checksums right: what gets behind them.
#pragma once

#include <cstring>
#include <string>

#include "source.h"
#include "support/rewritten_state.h"

namespace tamis::fuzz {

// Edits the parts until the source is empty, at most 16 times. Throws std::invalid_argument if the
// writer cannot write what comes out.
inline void edit(test::ContainerParts& parts, Source& source) {
  constexpr std::uint32_t kFloats[] = {0,          0x7F800000, 0xFF800000, 0x7FC00000,
                                       0x7F7FFFFF, 0xFF7FFFFF, 1,          0x80000000,
                                       0xFFFFFFFF, 0x3F800000, 0xBF800000, 70};
  constexpr std::uint64_t kExtents[] = {
      0, 1, 2, 69, 70, 71, 64, 140, 4294967295, 4294967296, ~std::uint64_t{0}};
  for (int count = 0; count < 16 && !source.is_empty(); ++count) {
    const std::uint8_t action = source.byte() % 10;
    if (action < 4 && !parts.metadata.empty()) {
      auto& [key, value] = parts.metadata[source.below(parts.metadata.size())];
      if (action == 0) value = source.pick(kNumbers);
      if (action == 1) value = source.text();
      if (action == 2) key = source.text();
      if (action == 3) value = std::to_string(source.word());
    } else if (action == 4 && !parts.metadata.empty()) {
      parts.metadata.erase(parts.metadata.begin() +
                           static_cast<std::ptrdiff_t>(source.below(parts.metadata.size())));
    } else if (action == 5) {
      std::string key = source.text();
      parts.metadata.emplace_back(std::move(key), std::string(source.pick(kNumbers)));
    } else if (!parts.tensors.empty()) {
      auto& tensor = parts.tensors[source.below(parts.tensors.size())];
      if (action == 6 && tensor.bytes.size() >= 4) {
        const std::uint32_t value = source.pick(kFloats);
        const std::size_t at = source.below(tensor.bytes.size() / 4) * 4;
        std::memcpy(tensor.bytes.data() + at, &value, sizeof value);
      } else if (action == 7 && !tensor.bytes.empty()) {
        tensor.bytes[source.below(tensor.bytes.size())] = std::byte{source.byte()};
      } else if (action == 8) {
        // Another size, with a shape that goes with it, or none of it.
        const std::uint64_t rows = source.pick(kExtents);
        const std::uint64_t columns = rows <= 140 ? 1 : 0;
        tensor.shape = {rows, columns};
        const std::size_t item = tensor.dtype == "U8" ? 1 : tensor.dtype == "I64" ? 8 : 4;
        tensor.bytes.resize(static_cast<std::size_t>(rows * columns) * item);
      } else if (action == 9) {
        tensor.name = source.text();
      }
    }
  }
}

}  // namespace tamis::fuzz
