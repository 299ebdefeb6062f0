#include "runs/json_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/require_memory.h"

namespace tamis::runs {

namespace {

constexpr std::size_t kDeepest = 200;
// What has one entry per sample or class is a list in our files; settings have names by the dozen.
constexpr std::size_t kMostMembers = 10'000;

// The most bytes that the parts of a text take when it is parsed. An entry of a list takes 16 bytes
// and a member 48, three times as much while their list grows. A list and a text that is not empty
// are blocks of their own, with what the allocator adds.
constexpr double kEntry = 3.0 * 16.0;
constexpr double kMember = 3.0 * 48.0;
constexpr double kList = kEntry + 64.0;
constexpr double kText = 48.0;
constexpr std::size_t kShortText = 15;  // stands in its own block
constexpr double kLongText = 32.0;
// The text itself, with the copy that the checksum is taken of, and what the parser keeps of the
// string that it is at, both as it stands and decoded.
constexpr double kCopies = 2.0;
constexpr double kParserCopies = 6.0;

double cost_of_text(std::size_t length) {
  // The name of a member is copied while its object grows.
  return length <= kShortText ? kText : kText + kLongText + 2.0 * static_cast<double>(length);
}

// The place of the quote that ends the string which begins at `begin`, or the end of the text.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '"') return i;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

[[noreturn]] void refuse_form(std::string_view source, const std::string& rule, std::size_t at) {
  throw std::runtime_error(fmt::format("{}: {}, got more at byte {}", source, rule, at));
}

}  // namespace

void check_cost(std::string_view text, std::string_view source) {
  std::array<std::size_t, kDeepest + 1> num_members{};  // by depth, of what is open
  std::size_t depth = 0;
  std::size_t longest = 0;
  double bytes = kEntry + kCopies * static_cast<double>(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"': {
        const std::size_t end = end_of_string(text, i);
        longest = std::max(longest, end - i);
        bytes += cost_of_text(end - i);
        i = end;
        break;
      }
      case '[':
      case '{':
        if (depth == kDeepest) {
          refuse_form(source, fmt::format("JSON must not be deeper than {}", kDeepest), i);
        }
        num_members[++depth] = 0;
        bytes += kList;
        break;
      case ']':
      case '}':
        if (depth > 0) --depth;
        break;
      case ':':
        if (++num_members[depth] > kMostMembers) {
          refuse_form(source,
                      fmt::format("JSON objects must have at most {} members", kMostMembers), i);
        }
        bytes += kMember;
        break;
      case ',':
        bytes += kEntry;
        break;
      default:
        break;
    }
  }
  detail::require_memory(bytes + kParserCopies * static_cast<double>(longest), source);
}

}  // namespace tamis::runs
