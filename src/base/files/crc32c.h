// CRC-32C (Castagnoli), the checksum of state files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tamis::detail {

// Checksum of `bytes`; `crc` is the checksum of what came before them. Uses the processor's own
// instruction where there is one.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// The same from tables, on any processor.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// One checksum per block of `block_size` bytes, the last block possibly shorter. Four blocks at a
// time, so it runs at memory bandwidth. Requires: block_size is a positive multiple of 8 and
// crcs.size() == ceil(bytes.size() / block_size).
void crc32c_blocks(std::span<const std::byte> bytes, std::size_t block_size,
                   std::span<std::uint32_t> crcs);

}  // namespace tamis::detail
