// Reading whole files, gzip or not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tamis::training {

// The bytes of a file, unpacked if it is gzip. Throws std::runtime_error if it cannot be read, the
// gzip data are damaged or cut short, or they do not fit into memory.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path);

// CRC-32 as in gzip and PNG files.
std::uint32_t crc32(std::span<const std::uint8_t> bytes);

// The first of `folders` that holds every one of `names`, each as it is or with ".gz" added.
std::optional<std::filesystem::path> find_folder(const std::vector<std::filesystem::path>& folders,
                                                 const std::vector<std::string>& names);

// `folder / name`, or that with ".gz" added if only this one exists.
std::filesystem::path resolve(const std::filesystem::path& folder, std::string_view name);

}  // namespace tamis::training
