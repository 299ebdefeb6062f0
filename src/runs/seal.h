// Checksums inside JSON documents. A sealed object ends with the member "crc32c": eight hexadecimal
// digits, the CRC-32C of its text with these digits as zeros. Whether it may be missing is a matter
// of the format's version. docs/run_folder.md describes it for writers of run folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runs/json.h"

namespace tamis::runs {

// The object on one line, sealed.
std::string sealed_line(const Json& object);
// write_json(), sealed.
void write_sealed_json(const std::filesystem::path& path, const Json& object);

struct SealedText {
  Json json;  // without the checksum
  bool is_sealed;
};
// parse_json(), and verifies the checksum if it is there. Throws std::runtime_error if it does not
// match; the message ends with the cure.
SealedText parse_sealed_json(std::string text, std::string_view source, std::string_view cure);

// A kind of file. From version `first_sealed` on its files must have a checksum: otherwise damage
// of the member's name would take the checksum away.
struct SealedFormat {
  const char* name;
  std::uint64_t newest;
  std::uint64_t first_sealed;
  const char* cure;  // "whoever changed it ..."
};
struct SealedDocument {
  Json json;  // without the checksum
  std::uint64_t version;
};
// Throws std::runtime_error if the file is of another format, of a newer version, or damaged.
SealedDocument read_sealed_json(const std::filesystem::path& path, const SealedFormat& format);

[[noreturn]] void refuse_without_seal(std::string_view source, std::string_view cure);

}  // namespace tamis::runs
