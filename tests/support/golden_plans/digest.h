// Digest: 64-bit FNV-1a of numbers as little-endian bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tamis::test::golden {

class Digest {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) add_byte(std::to_integer<std::uint8_t>(byte));
  }
  // The length first, so that two texts in a row are not one.
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    add(std::as_bytes(std::span(text)));
  }
  void add(std::uint64_t value) {
    for (unsigned k = 0; k < 8; ++k) add_byte(static_cast<std::uint8_t>(value >> (8 * k)));
  }
  // All NaNs are one.
  void add(float value) {
    const std::uint32_t bits =
        value == value ? std::bit_cast<std::uint32_t>(value) : std::uint32_t{0x7fc00000};
    for (unsigned k = 0; k < 4; ++k) add_byte(static_cast<std::uint8_t>(bits >> (8 * k)));
  }
  void add(double value) {
    add(value == value ? std::bit_cast<std::uint64_t>(value) : std::uint64_t{0x7ff8} << 48U);
  }

  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(std::uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3U; }

  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

// The lowest `num_digits` hexadecimal digits.
inline std::string to_hex(std::uint64_t value, unsigned num_digits = 16) {
  std::string text(num_digits, '0');
  for (unsigned k = 0; k < num_digits; ++k) {
    text[num_digits - 1 - k] = "0123456789abcdef"[(value >> (4 * k)) & 15U];
  }
  return text;
}

}  // namespace tamis::test::golden
