#include "program/shared/json_input.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "program/shared/arguments.h"

namespace tamis::program {

using runs::array_member;
using runs::get_float_or_null;
using runs::Json;
using runs::refuse;

Json read_large_json(const std::string& path) {
  const std::string source = path == "-" ? "standard input" : path;
  std::string text = runs::read_text(path);
  // A parsed number takes 16 bytes; the shortest one with its comma takes 2.
  require_memory(2.0 * static_cast<double>(text.size()), source);
  return runs::parse_json(std::move(text), source);
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
