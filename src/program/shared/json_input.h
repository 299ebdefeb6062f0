// JSON files as people and Python write them, with messages that say where something is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tamis::program {

// Parses a file, or standard input if `path` is "-". Beyond JSON it takes what Python writes for
// numbers that are not finite: NaN reads as null and the infinities as numbers beyond the range of
// a float. Throws std::runtime_error with the file and, for a syntax error, line and column.
nlohmann::json read_json(const std::string& path);

// Throws std::runtime_error "<source>: <what> must be <rule>, got <value>".
[[noreturn]] void refuse(std::string_view source, std::string_view what, std::string_view rule,
                         const nlohmann::json& value);

// Member of an object. Throws if `document` is not an object or has no such key.
const nlohmann::json& member(const nlohmann::json& document, const char* key,
                             std::string_view source);
// The same, and an array.
const nlohmann::json& array_member(const nlohmann::json& document, const char* key,
                                   std::string_view source);

// True, and the number in `out`, if the value is a whole number in [0, limit). 3.0 counts as whole.
bool get_whole(const nlohmann::json& value, std::uint64_t limit, std::uint64_t& out);

// True, and the number in `out`, if the value is a number or null, which gives NaN. Numbers beyond
// the range of a float give infinity.
bool get_float_or_null(const nlohmann::json& value, float& out);

// Scores from an array, or from the key "scores" of an object; null and NaN are unscored. Throws if
// there is none or if one is infinite.
std::vector<float> read_scores(const std::string& path);

// Integers from an array, or from the key "labels" of an object. Throws if one is none, or beyond
// 32 bits.
std::vector<std::int32_t> read_labels(const std::string& path);

}  // namespace tamis::program
