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

namespace {

// The most memory that the text takes when it is parsed. An entry of an array takes 16 bytes and
// one of an object 48; both are copied while their list grows, and a list of its own takes 56 more.
double parsed_size(std::string_view text) {
  constexpr double kEntry = 2.5 * 16.0;
  constexpr double kMember = 2.5 * 48.0;
  constexpr double kList = 56.0;
  const auto count = [&](char c) {
    return static_cast<double>(std::count(text.begin(), text.end(), c));
  };
  return kEntry * (count(',') + 1.0) + kMember * count(':') + kList * (count('[') + count('{'));
}

}  // namespace

Json read_large_json(const std::string& path) {
  const std::string source = path == "-" ? "standard input" : path;
  std::string text = runs::read_text(path);
  require_memory(static_cast<double>(text.size()) + parsed_size(text), source);
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
