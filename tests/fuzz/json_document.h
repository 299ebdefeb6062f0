// JSON documents that a fuzzer's bytes make: right in form, odd in content.
#pragma once

#include <string>
#include <string_view>

#include "source.h"

namespace tamis::fuzz {

inline constexpr std::string_view kValues[] = {"0",
                                               "1",
                                               "2",
                                               "-1",
                                               "0.5",
                                               "1e308",
                                               "1e400",
                                               "NaN",
                                               "Infinity",
                                               "-Infinity",
                                               "null",
                                               "[]",
                                               "{}",
                                               "true",
                                               "\"\"",
                                               "3.0",
                                               "\"full\"",
                                               "\"mAP\"",
                                               "4294967295",
                                               "4294967296",
                                               "18446744073709551616",
                                               "1e39",
                                               "\"x\\u001b\"",
                                               "\"\\ud800\"",
                                               "\"../x\"",
                                               "\"lower\"",
                                               "\"fraction\"",
                                               "100",
                                               "40",
                                               "1e-5"};

inline std::string make_value(Source& source, int depth = 0) {
  const std::uint8_t action = source.byte();
  if (action % 4 != 0 || depth >= 6 || source.is_empty()) {
    return std::string(kValues[action % std::size(kValues)]);
  }
  std::string text = "[";
  const std::size_t count = source.below(6);
  for (std::size_t k = 0; k < count; ++k) {
    if (k > 0) text += ',';
    text += make_value(source, depth + 1);
  }
  return text + "]";
}

// An object with up to six of these keys.
template <std::size_t N>
std::string make_object(Source& source, const std::string_view (&keys)[N]) {
  std::string text = "{";
  const std::size_t count = 1 + source.below(6);
  for (std::size_t k = 0; k < count; ++k) {
    if (k > 0) text += ',';
    text += '"';
    text += source.pick(keys);
    text += "\":";
    text += make_value(source);
  }
  return text + "}";
}

}  // namespace tamis::fuzz
