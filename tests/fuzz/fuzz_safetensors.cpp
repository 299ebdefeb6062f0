// Headers of safetensors files as text, with their checksum made right.
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include "base/files/crc32c.h"
#include "base/files/safetensors.h"
#include "source.h"

namespace {

using namespace tamis::detail;

constexpr std::string_view kPrefix = R"({"__metadata__":{"tamis_crc32c":")";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// What is parsed is written the same way, and parsed to the same again.
void check_round_trip(std::string_view json) {
  const SafetensorsHeader header = parse_header(json);
  const std::string text = format_header(header);
  if (format_header(parse_header(text)) != text) std::abort();
}

// The file of this header and these data, with the checksum that the header needs.
std::string make_file(std::string header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  if (header.starts_with(kPrefix) && header.size() >= kPrefix.size() + 8) {
    const std::size_t digits = sizeof length + kPrefix.size();
    file.replace(digits, 8, "00000000");
    constexpr std::string_view kHex = "0123456789abcdef";
    const std::uint32_t crc = crc32c(bytes_of(file));
    for (std::size_t k = 0; k < 8; ++k) file[digits + k] = kHex[(crc >> (28 - 4 * k)) & 15U];
  }
  return file += data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    check_round_trip(input);
  } catch (const std::runtime_error&) {
  }
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string file =
      make_file(std::string(input.substr(0, end)), input.substr(std::min(end + 1, input.size())));
  try {
    SafetensorsReader reader("file", bytes_of(file));
    reader.verify_data();
    for (const Tensor& tensor : reader.tensors()) {
      if (!tensor.bytes.empty() && tensor.bytes.back() == std::byte{1}) (void)tensor.bytes.front();
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
