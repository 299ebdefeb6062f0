// Error messages with the name, the rule and the value.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tamis::detail {

// Joins anything that can be streamed; numbers as a person would write them, in any locale.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(10);
  (out << ... << parts);
  return out.str();
}

// Throws std::invalid_argument "<who>: <what> must be <rule>, got <value>" unless `holds`.
template <typename Value>
void require(bool holds, std::string_view who, std::string_view what, std::string_view rule,
             const Value& value) {
  if (!holds) {
    throw std::invalid_argument(concat(who, ": ", what, " must be ", rule, ", got ", value));
  }
}

// The entry of that name. Throws std::invalid_argument "<what> must be one of ..., got <name>";
// `more` are names that are known besides.
template <typename Entries>
const auto& find_named(const Entries& all, std::string_view what, std::string_view name,
                       std::string_view more = "") {
  std::string known;
  for (const auto& entry : all) {
    if (entry.name == name) return entry;
    known += concat(known.empty() ? "" : ", ", entry.name);
  }
  throw std::invalid_argument(
      concat(what, " must be one of ", known, more.empty() ? "" : ", ", more, ", got ", name));
}

}  // namespace tamis::detail
