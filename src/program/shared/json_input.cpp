#include "program/shared/json_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/files/posix_io.h"
#include "program/shared/arguments.h"

namespace tamis::program {

namespace {

using nlohmann::json;

std::string read_text(const std::string& path) {
  const bool is_standard_input = path == "-";
  const detail::Descriptor file(is_standard_input ? ::dup(STDIN_FILENO)
                                                  : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) detail::throw_io_error(path, "open", errno);
  struct stat status = {};
  std::size_t room = std::size_t{1} << 16U;
  if (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    // One more, so that the end of the file shows without another allocation.
    room = static_cast<std::size_t>(status.st_size) + 1;
  }
  std::string text;
  std::size_t size = 0;
  for (;;) {
    if (size == text.size()) text.resize(std::max(room, 2 * text.size()));
    const ssize_t count = detail::retry_interrupted(
        [&] { return ::read(file.get(), text.data() + size, text.size() - size); });
    if (count < 0) detail::throw_io_error(path, "read", errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

// Replaces NaN, Infinity and -Infinity outside strings. Returns where the NaNs stood, because null
// is one character longer.
std::vector<std::size_t> replace_non_finite(std::string& text) {
  std::vector<std::size_t> nans;
  if (text.find("NaN") == std::string::npos && text.find("Infinity") == std::string::npos) {
    return nans;
  }
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (in_string && rest[0] == '\\') {
      out += rest.substr(0, 2);
      i += 2;
    } else if (!in_string && rest.starts_with("NaN")) {
      out += "null";
      nans.push_back(i);
      i += 3;
    } else if (!in_string && rest.starts_with("Infinity")) {
      // As long as the word, and infinite as a float. A sign stands before it already.
      out += "1.79e308";
      i += 8;
    } else {
      in_string ^= rest[0] == '"';
      out += rest[0];
      ++i;
    }
  }
  text = std::move(out);
  return nans;
}

// "line 3, column 7" of a byte, both from 1.
std::string position_of(std::string_view text, std::size_t offset,
                        const std::vector<std::size_t>& nans) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  // Each null of this line that stands for a NaN has moved what follows by one.
  std::size_t column = offset - line_start + 1;
  for (std::size_t k = 0; k < nans.size(); ++k) {
    const std::size_t moved_to = nans[k] + k;
    if (moved_to >= line_start && moved_to + 4 <= offset) --column;
  }
  return fmt::format("line {}, column {}", line, column);
}

// What nlohmann says, without its error number, its own position and anything long.
std::string reason_of(const json::exception& error) {
  std::string reason = error.what();
  if (const std::size_t end = reason.find("] "); end != std::string::npos) reason.erase(0, end + 2);
  if (reason.starts_with("parse error at")) {
    if (const std::size_t end = reason.find(": "); end != std::string::npos) {
      reason.erase(0, end + 2);
    }
  }
  constexpr std::size_t kLongest = 200;
  if (reason.size() > kLongest) reason = reason.substr(0, kLongest) + "...";
  return reason;
}

std::string brief(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_number_float() && std::abs(value.get<double>()) == 1.79e308) {
    return value.get<double>() < 0.0 ? "-Infinity" : "Infinity";
  }
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace

json read_json(const std::string& path) {
  std::string text = read_text(path);
  const std::string_view source = path == "-" ? "standard input" : std::string_view(path);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw std::runtime_error(fmt::format("{}: must be JSON, got an empty file", source));
  }
  // A parsed number takes 16 bytes; the shortest one with its comma takes 2.
  require_memory(2.0 * static_cast<double>(text.size()), source);
  const std::vector<std::size_t> nans = replace_non_finite(text);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw std::runtime_error(fmt::format(
        "{}: not valid JSON at {}: {}", source,
        position_of(text, error.byte == 0 ? 0 : error.byte - 1, nans), reason_of(error)));
  } catch (const json::out_of_range& error) {
    throw std::runtime_error(fmt::format("{}: not valid JSON: {}", source, reason_of(error)));
  }
}

void refuse(std::string_view source, std::string_view what, std::string_view rule,
            const json& value) {
  throw std::runtime_error(
      fmt::format("{}: {} must be {}, got {}", source, what, rule, brief(value)));
}

const json& member(const json& document, const char* key, std::string_view source) {
  if (!document.is_object()) {
    refuse(source, "the document", fmt::format("an object with the key \"{}\"", key), document);
  }
  const auto found = document.find(key);
  if (found == document.end()) {
    throw std::runtime_error(fmt::format("{}: the key \"{}\" is missing", source, key));
  }
  return *found;
}

const json& array_member(const json& document, const char* key, std::string_view source) {
  const json& value = member(document, key, source);
  if (!value.is_array()) refuse(source, key, "an array", value);
  return value;
}

bool get_whole(const json& value, std::uint64_t limit, std::uint64_t& out) {
  if (value.is_number_unsigned()) {
    out = value.get<std::uint64_t>();
    return out < limit;
  }
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  if (!(number >= 0.0 && number < 0x1p53) || number != std::floor(number)) return false;
  out = static_cast<std::uint64_t>(number);
  return out < limit;
}

bool get_float_or_null(const json& value, float& out) {
  if (value.is_null()) {
    out = std::numeric_limits<float>::quiet_NaN();
    return true;
  }
  if (!value.is_number()) return false;
  out = static_cast<float>(value.get<double>());
  return true;
}

std::vector<float> read_scores(const std::string& path) {
  const json document = read_json(path);
  const json& values = document.is_array() ? document : array_member(document, "scores", path);
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
  const json document = read_json(path);
  const json& values = document.is_array() ? document : array_member(document, "labels", path);
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
