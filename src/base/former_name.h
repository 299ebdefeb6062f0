// The name that the product had before; files written under it still load.
#pragma once

#include <string_view>

namespace tamis::detail {

inline constexpr std::string_view kFormerName = "winnow";

// True if `found` is `wanted`, a format such as "tamis-run", or the same under the former name.
constexpr bool is_format(std::string_view found, std::string_view wanted) {
  constexpr std::string_view kName = "tamis";
  return found == wanted || (found.starts_with(kFormerName) && wanted.starts_with(kName) &&
                             found.substr(kFormerName.size()) == wanted.substr(kName.size()));
}

}  // namespace tamis::detail
