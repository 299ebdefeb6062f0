// Checksums inside JSON documents. A sealed object ends with the member "crc32c": eight hexadecimal
// digits, the CRC-32C of its text with these digits as zeros. Other writers may leave it out: an
// object without it is taken as it is. docs/run_folder.md describes it for writers of run folders.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runs/json.h"

namespace tamis::runs {

// The object on one line, sealed.
std::string sealed_line(const Json& object);
// write_json(), sealed.
void write_sealed_json(const std::filesystem::path& path, const Json& object);

// True if the text of an object names a checksum.
bool is_sealed(std::string_view text);

// parse_json() without the checksum, which is verified if it is there. Throws std::runtime_error if
// it does not match.
Json parse_sealed_json(std::string text, std::string_view source);
Json read_sealed_json(const std::filesystem::path& path);

}  // namespace tamis::runs
