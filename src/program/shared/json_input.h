// Arrays of numbers in JSON files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runs/json.h"

namespace tamis::program {

// Parses a file, or standard input if `path` is "-". Throws std::runtime_error, also if the
// machine has not enough memory for what is in it.
runs::Json read_large_json(const std::string& path);

// Scores from an array, or from the key "scores" of an object; null and NaN are unscored. Throws if
// there is none or if one is infinite.
std::vector<float> read_scores(const std::string& path);

// Integers from an array, or from the key "labels" of an object. Throws if one is none, or beyond
// 32 bits.
std::vector<std::int32_t> read_labels(const std::string& path);

}  // namespace tamis::program
