#include "base/files/safetensors_header.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <set>
#include <span>
#include <stdexcept>
#include <system_error>

#include "base/check.h"

namespace tamis::detail {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";

std::string json_string(std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += "\\u00";
      out += kHexDigits[code >> 4U];
      out += kHexDigits[code & 0xFU];
    } else {
      out += c;
    }
  }
  return out += '"';
}

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view json) : json_(json) {}

  SafetensorsHeader parse() {
    SafetensorsHeader header;
    parse_object([&](const std::string& key) {
      if (key == kMetadataKey) {
        parse_metadata(header.metadata);
      } else {
        header.tensors.push_back(parse_tensor(key));
      }
    });
    skip_space();
    if (at_ != json_.size()) fail("the end");
    return header;
  }

 private:
  void parse_metadata(Metadata& metadata) {
    parse_object([&](const std::string& key) { metadata.emplace_back(key, parse_string()); });
  }

  TensorEntry parse_tensor(const std::string& name) {
    TensorEntry entry;
    entry.name = name;
    const std::size_t num_keys = parse_object([&](const std::string& key) {
      if (key == "dtype") {
        entry.dtype = parse_string();
      } else if (key == "shape") {
        entry.shape = parse_integers();
      } else if (key == "data_offsets") {
        const std::vector<std::uint64_t> offsets = parse_integers();
        if (offsets.size() != 2 || offsets[0] > offsets[1]) fail("a begin and an end before this");
        entry.begin = offsets[0];
        entry.end = offsets[1];
      } else {
        fail("dtype, shape or data_offsets before this");
      }
    });
    if (num_keys != 3) fail("dtype, shape and data_offsets before this");
    return entry;
  }

  // Calls parse_value(key) with the position at each value. Returns how many keys there were.
  template <typename ParseValue>
  std::size_t parse_object(ParseValue parse_value) {
    std::set<std::string> keys;
    expect('{', "'{'");
    if (take('}')) return 0;
    do {
      const auto [key, is_new] = keys.insert(parse_string());
      if (!is_new) fail("another key before this");
      expect(':', "':'");
      parse_value(*key);
    } while (take(','));
    expect('}', "',' or '}'");
    return keys.size();
  }

  std::vector<std::uint64_t> parse_integers() {
    std::vector<std::uint64_t> values;
    expect('[', "'['");
    if (take(']')) return values;
    do {
      values.push_back(parse_integer());
    } while (take(','));
    expect(']', "',' or ']'");
    return values;
  }

  std::uint64_t parse_integer() {
    skip_space();
    const char* const begin = json_.data() + at_;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(begin, json_.data() + json_.size(), value);
    const auto length = static_cast<std::size_t>(end - begin);
    if (error != std::errc{} || (length > 1 && *begin == '0')) fail("a whole number");
    at_ += length;
    return value;
  }

  std::string parse_string() {
    expect('"', "'\"'");
    std::string out;
    for (;;) {
      const char c = next();
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) fail("a character of a string");
      if (c == '\\') {
        parse_escape(out);
      } else {
        out += c;
      }
    }
  }

  void parse_escape(std::string& out) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char c = next();
    if (c == 'u') {
      append_utf8(out, parse_code_unit());
      return;
    }
    const std::size_t known = kEscapes.find(c);
    if (known == std::string_view::npos) fail("a known escape before this");
    out += kMeanings[known];
  }

  unsigned parse_code_unit() {
    const std::string_view digits = json_.substr(at_, 4);
    unsigned code = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc{} || end != digits.data() + 4) fail("four hexadecimal digits");
    if (code >= 0xD800 && code < 0xE000) fail("a character that is not half of a pair");
    at_ += 4;
    return code;
  }

  static void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0U | (code >> 6U));
      out += static_cast<char>(0x80U | (code & 0x3FU));
    } else {
      out += static_cast<char>(0xE0U | (code >> 12U));
      out += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
      out += static_cast<char>(0x80U | (code & 0x3FU));
    }
  }

  void skip_space() {
    while (at_ < json_.size() && std::string_view(" \t\n\r").find(json_[at_]) != json_.npos) ++at_;
  }

  char next() {
    if (at_ == json_.size()) fail("more");
    return json_[at_++];
  }

  bool take(char c) {
    skip_space();
    if (at_ == json_.size() || json_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!take(c)) fail(what);
  }

  [[noreturn]] void fail(std::string_view expected) const {
    throw std::runtime_error(concat("expected ", expected, " at byte ", at_, " of the header"));
  }

  std::string_view json_;
  std::size_t at_ = 0;
};

// Not through a stream, which would follow the program's locale.
std::string list_of(std::span<const std::uint64_t> numbers) {
  std::string list = "[";
  for (const std::uint64_t number : numbers) {
    if (list.size() > 1) list += ',';
    list += std::to_string(number);
  }
  return list += ']';
}

std::string format_entry(const TensorEntry& entry) {
  const std::array<std::uint64_t, 2> offsets = {entry.begin, entry.end};
  return json_string(entry.name) + ":{\"dtype\":" + json_string(entry.dtype) +
         ",\"shape\":" + list_of(entry.shape) + ",\"data_offsets\":" + list_of(offsets) + '}';
}

}  // namespace

std::string format_header(const SafetensorsHeader& header) {
  std::string json = '{' + json_string(kMetadataKey) + ":{";
  bool first = true;
  for (const auto& [key, value] : header.metadata) {
    if (!first) json += ',';
    first = false;
    json += json_string(key) + ':' + json_string(value);
  }
  json += '}';
  for (const TensorEntry& entry : header.tensors) json += ',' + format_entry(entry);
  return json += '}';
}

SafetensorsHeader parse_header(std::string_view json) { return HeaderParser(json).parse(); }

}  // namespace tamis::detail
