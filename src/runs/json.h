// JSON files as people and other programs write them, with messages that say where something is
// wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tamis::runs {

using Json = nlohmann::ordered_json;

// All of a file, or of standard input if `path` is "-". Throws std::runtime_error.
std::string read_text(const std::string& path);

// Beyond JSON it takes what Python writes for numbers that are not finite: NaN reads as null and
// the infinities as numbers beyond the range of a float. Throws std::runtime_error with the source,
// line and column, and also if the document would take more memory than there is, or time that
// grows faster than the text.
Json parse_json(std::string text, std::string_view source);
// Both of the above.
Json read_json(const std::filesystem::path& path);

// A file appears complete or not at all. Throws std::runtime_error.
void write_text(const std::filesystem::path& path, std::string_view text);
// All on one line. Throws std::runtime_error if a text is not UTF-8, such as a path may be.
std::string format_line(const Json& json);
// One key per line, and members of objects in it likewise; short enough to read.
std::string format_document(const Json& json);
void write_json(const std::filesystem::path& path, const Json& json);

// Throws std::runtime_error "<source>: <what> must be <rule>, got <value>".
[[noreturn]] void refuse(std::string_view source, std::string_view what, std::string_view rule,
                         const Json& value);

// Throws std::runtime_error unless "format" of the document is `format`, under the present or the
// former name, and its "format_version" is one that this program reads, from 1 to `newest`.
// Returns the version.
std::uint64_t require_format(const Json& document, std::string_view format, std::uint64_t newest,
                             std::string_view source);

// Member of an object. Throws if `document` is not an object or has no such key.
const Json& member(const Json& document, const char* key, std::string_view source);
// The same, and an array.
const Json& array_member(const Json& document, const char* key, std::string_view source);

// True, and the number in `out`, if the value is a whole number in [0, limit). 3.0 counts as whole.
bool get_whole(const Json& value, std::uint64_t limit, std::uint64_t& out);

// True, and the number in `out`, if the value is a number or null, which gives NaN. Numbers beyond
// the range of a float give infinity.
bool get_float_or_null(const Json& value, float& out);

// With this many digits, of which nine give every float back; null for what is not finite.
Json short_numbers(std::span<const float> values, int digits);

// Members of one object, each checked by its own rule. The object must outlive it.
class Fields {
 public:
  Fields(const Json& object, std::string source) : object_(object), source_(std::move(source)) {}

  // Null if it is not there or null itself.
  const Json* find(const char* key) const;

  Fields object(const char* key) const;
  std::string text(const char* key) const;
  std::uint64_t whole(const char* key, std::uint64_t min = 0) const;
  // Any whole number of 64 bits.
  std::uint64_t seed(const char* key) const;
  double finite(const char* key) const;
  // Finite, and at least 0.
  double amount(const char* key) const;
  // NaN for null, and for what is not finite.
  double number_or_nan(const char* key) const;

  const Json& json() const { return object_; }
  const std::string& source() const { return source_; }

 private:
  const Json& object_;
  std::string source_;
};

}  // namespace tamis::runs
