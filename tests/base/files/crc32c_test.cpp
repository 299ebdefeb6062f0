#include "base/files/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tamis::detail {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xFFU);
  return bytes;
}

// Bit by bit, straight from the definition.
std::uint32_t crc32c_by_definition(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1U) ^ 0x82F63B78U : crc >> 1U;
  }
  return ~crc;
}

// RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms.
TEST(Crc32c, MatchesThePublishedVectors) {
  Bytes ascending(32);
  for (std::size_t i = 0; i < 32; ++i) ascending[i] = static_cast<std::byte>(i);
  const Bytes descending(ascending.rbegin(), ascending.rend());
  const std::vector<std::pair<Bytes, std::uint32_t>> vectors = {
      {{}, 0U},
      {bytes_of("123456789"), 0xE3069283U},
      {Bytes(32, std::byte{0x00}), 0x8A9136AAU},
      {Bytes(32, std::byte{0xFF}), 0x62A8AB43U},
      {ascending, 0x46DD794EU},
      {descending, 0x113FDB5CU},
  };
  for (const auto& [bytes, crc] : vectors) {
    EXPECT_EQ(crc32c(bytes), crc);
    EXPECT_EQ(crc32c_portable(bytes), crc);
  }
}

TEST(Crc32c, IsTheSameFromTheInstructionAndFromTablesForAnyLengthAndAlignment) {
  const Bytes bytes = random_bytes(400, 1);
  for (std::size_t begin = 0; begin < 16; ++begin) {
    for (std::size_t size = 0; size + begin <= 300; ++size) {
      const std::span<const std::byte> part = std::span(bytes).subspan(begin, size);
      const std::uint32_t expected = crc32c_by_definition(part);
      ASSERT_EQ(crc32c(part), expected) << begin << " + " << size;
      ASSERT_EQ(crc32c_portable(part), expected) << begin << " + " << size;
    }
  }
}

TEST(Crc32c, OfTwoPartsIsThatOfTheWhole) {
  const Bytes bytes = random_bytes(1000, 2);
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 7) {
    const auto head = std::span(bytes).first(cut);
    const auto tail = std::span(bytes).subspan(cut);
    ASSERT_EQ(crc32c(tail, crc32c(head)), whole) << cut;
    ASSERT_EQ(crc32c_portable(tail, crc32c_portable(head)), whole) << cut;
  }
}

TEST(Crc32c, ChangesWithEveryBit) {
  Bytes bytes = random_bytes(512, 3);
  const std::uint32_t before = crc32c(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= mask;
    ASSERT_NE(crc32c(bytes), before) << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST(Crc32cBlocks, AreTheChecksumsOfTheBlocks) {
  constexpr std::size_t kBlock = 64;
  const Bytes bytes = random_bytes(kBlock * 13, 4);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::span<const std::byte> part = std::span(bytes).first(size);
    std::vector<std::uint32_t> crcs((size + kBlock - 1) / kBlock);
    crc32c_blocks(part, kBlock, crcs);
    for (std::size_t block = 0; block < crcs.size(); ++block) {
      const std::size_t begin = block * kBlock;
      const std::size_t length = std::min(kBlock, size - begin);
      ASSERT_EQ(crcs[block], crc32c_by_definition(part.subspan(begin, length)))
          << "block " << block << " of " << size << " bytes";
    }
  }
}

}  // namespace
}  // namespace tamis::detail
