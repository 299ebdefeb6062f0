#include "runs/base64.h"

#include <cstdint>

namespace tamis::runs {

namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kGroupBytes = 3;  // of a group of four digits

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / kGroupBytes * 4);
  for (std::size_t begin = 0; begin < bytes.size(); begin += kGroupBytes) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < kGroupBytes; ++k) {
      group = group << 8U |
              (begin + k < bytes.size() ? std::to_integer<std::uint32_t>(bytes[begin + k]) : 0);
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool is_padding = begin + digit > bytes.size();
      text += is_padding ? '=' : kBase64Digits[group >> (18 - 6 * digit) & 63U];
    }
  }
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t num_padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::size_t num_bytes = text.size() / 4 * kGroupBytes - num_padding;
  std::vector<std::byte> bytes;
  bytes.reserve(num_bytes);
  std::uint32_t bits = 0;
  unsigned num_bits = 0;
  for (const char c : text.substr(0, text.size() - num_padding)) {
    const std::size_t digit = kBase64Digits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> num_bits & 255U));
  }
  // What the last digit has beyond the last byte must be zero: one text for each row of bytes.
  if ((bits & ((1U << num_bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace tamis::runs
