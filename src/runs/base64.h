// Bytes as text (RFC 4648, with padding), for pictures in JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tamis::runs {

std::string to_base64(std::span<const std::byte> bytes);

// Empty if the text is anything but what to_base64() writes: no line ends, no spaces, all padding.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace tamis::runs
