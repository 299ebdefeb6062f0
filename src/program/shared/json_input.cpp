#include "program/shared/json_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "program/shared/arguments.h"

namespace tamis::program {

using runs::array_member;
using runs::get_float_or_null;
using runs::Json;
using runs::refuse;

Json read_large_json(const std::string& path) {
  return runs::parse_json(runs::read_text(path), path == "-" ? "standard input" : path);
}

std::vector<float> read_scores(const std::string& path) {
  const Json document = read_large_json(path);
  const Json& values = document.is_array() ? document : array_member(document, "scores", path);
  if (values.empty() || values.size() > kMaxSamples) {
    throw std::runtime_error(fmt::format("{}: number of scores must be in [1, {}], got {}", path,
                                         kMaxSamples, values.size()));
  }
  std::vector<float> scores(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!get_float_or_null(values[i], scores[i]) || std::isinf(scores[i])) {
      refuse(path, fmt::format("scores[{}]", i), "a finite 32-bit number or null", values[i]);
    }
  }
  return scores;
}

std::vector<std::int32_t> read_labels(const std::string& path) {
  const Json document = read_large_json(path);
  const Json& values = document.is_array() ? document : array_member(document, "labels", path);
  std::vector<std::int32_t> labels(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i].is_number() ? values[i].get<double>() : std::nan("");
    if (!(value == std::floor(value)) || std::abs(value) > 0x7fffffff) {
      refuse(path, fmt::format("labels[{}]", i), "a 32-bit integer", values[i]);
    }
    labels[i] = static_cast<std::int32_t>(value);
  }
  return labels;
}

}  // namespace tamis::program
