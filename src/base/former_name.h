// The product's former name: files that carry it still load.
#pragma once

#include <string_view>

namespace tamis::detail {

inline constexpr std::string_view kName = "tamis";
inline constexpr std::string_view kFormerName = "winnow";

// True if `text` is `name`, which begins with kName, or what it was under the former name.
constexpr bool is_name(std::string_view text, std::string_view name) {
  return text == name || (text.starts_with(kFormerName) &&
                          text.substr(kFormerName.size()) == name.substr(kName.size()));
}

}  // namespace tamis::detail
