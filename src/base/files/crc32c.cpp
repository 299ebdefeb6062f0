#include "base/files/crc32c.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tamis::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "state files are little-endian");

std::uint64_t load_word(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// kTables[k][b]: what byte b adds to the checksum when k more bytes follow it ("slicing by 8").
constexpr Tables make_tables() {
  constexpr std::uint32_t kReversedPolynomial = 0x82F63B78U;
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) * kReversedPolynomial);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t previous = tables[k - 1][byte];
      tables[k][byte] = (previous >> 8U) ^ tables[0][previous & 0xFFU];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

#if defined(__x86_64__)

bool has_crc_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                             std::uint32_t crc) {
  std::uint64_t state = ~crc;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) state = _mm_crc32_u64(state, load_word(at));
  auto narrow = static_cast<std::uint32_t>(state);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, std::to_integer<unsigned char>(*at));
  return ~narrow;
}

// The instruction takes three cycles but can start every cycle, so four independent blocks take
// little more time than one.
__attribute__((target("sse4.2"))) void crc32c_sse42_by_4(const std::byte* at,
                                                         std::size_t block_size,
                                                         std::uint32_t* crcs) {
  constexpr std::uint64_t kStart = 0xFFFFFFFFU;
  std::uint64_t a = kStart;
  std::uint64_t b = kStart;
  std::uint64_t c = kStart;
  std::uint64_t d = kStart;
  for (std::size_t i = 0; i < block_size; i += 8) {
    a = _mm_crc32_u64(a, load_word(at + i));
    b = _mm_crc32_u64(b, load_word(at + block_size + i));
    c = _mm_crc32_u64(c, load_word(at + 2 * block_size + i));
    d = _mm_crc32_u64(d, load_word(at + 3 * block_size + i));
  }
  crcs[0] = ~static_cast<std::uint32_t>(a);
  crcs[1] = ~static_cast<std::uint32_t>(b);
  crcs[2] = ~static_cast<std::uint32_t>(c);
  crcs[3] = ~static_cast<std::uint32_t>(d);
}

#endif

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const std::uint64_t word = load_word(at) ^ crc;
    crc = 0;
    for (unsigned k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xFFU];
  }
  for (; left > 0; --left, ++at) {
    crc = (crc >> 8U) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xFFU];
  }
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  if (has_crc_instruction()) return crc32c_sse42(bytes, crc);
#endif
  return crc32c_portable(bytes, crc);
}

void crc32c_blocks(std::span<const std::byte> bytes, std::size_t block_size,
                   std::span<std::uint32_t> crcs) {
  assert(block_size > 0 && block_size % 8 == 0);
  assert(crcs.size() == (bytes.size() + block_size - 1) / block_size);
  std::size_t block = 0;
#if defined(__x86_64__)
  if (has_crc_instruction()) {
    for (; (block + 4) * block_size <= bytes.size(); block += 4) {
      crc32c_sse42_by_4(bytes.data() + block * block_size, block_size, &crcs[block]);
    }
  }
#endif
  for (; block < crcs.size(); ++block) {
    const std::size_t begin = block * block_size;
    crcs[block] = crc32c(bytes.subspan(begin, std::min(block_size, bytes.size() - begin)));
  }
}

}  // namespace tamis::detail
