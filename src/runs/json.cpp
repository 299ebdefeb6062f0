#include "runs/json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/posix_io.h"
#include "base/former_name.h"
#include "base/require_memory.h"
#include "runs/json_cost.h"

namespace tamis::runs {

namespace {

constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 53U;
// JSON has no infinity; what stands for it in our files lies beyond the range of a float.
constexpr double kMaxFinite = std::numeric_limits<float>::max();

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
std::string reason_of(const Json::exception& error) {
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

std::string brief(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_number_float() && std::abs(value.get<double>()) == 1.79e308) {
    return value.get<double>() < 0.0 ? "-Infinity" : "Infinity";
  }
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

std::string format_json(const Json& json, int depth) {
  // Lists and objects of the third level stay on one line.
  if (!json.is_object() || json.empty() || depth == 2) return format_line(json);
  const std::string indent(static_cast<std::size_t>(2 * depth + 2), ' ');
  std::string text = "{";
  for (const auto& [key, value] : json.items()) {
    text += fmt::format("{}{}{}: {}", text.size() == 1 ? "\n" : ",\n", indent, format_line(key),
                        format_json(value, depth + 1));
  }
  return fmt::format("{}\n{}}}", text, std::string(static_cast<std::size_t>(2 * depth), ' '));
}

}  // namespace

std::string format_line(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    throw std::runtime_error(
        fmt::format("text of a JSON file must be UTF-8, got {}",
                    json.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
}

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
    detail::require_memory(static_cast<double>(room), path);
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

Json parse_json(std::string text, std::string_view source) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw std::runtime_error(fmt::format("{}: must be JSON, got an empty file", source));
  }
  check_cost(text, source);
  const std::vector<std::size_t> nans = replace_non_finite(text);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw std::runtime_error(fmt::format(
        "{}: not valid JSON at {}: {}", source,
        position_of(text, error.byte == 0 ? 0 : error.byte - 1, nans), reason_of(error)));
  } catch (const Json::out_of_range& error) {
    throw std::runtime_error(fmt::format("{}: not valid JSON: {}", source, reason_of(error)));
  }
}

Json read_json(const std::filesystem::path& path) {
  return parse_json(read_text(path.native()), path.native());
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  detail::AtomicFile file(path, text.size());
  file.write(0, std::as_bytes(std::span(text)));
  file.commit();
}

std::string format_document(const Json& json) { return format_json(json, 0) + "\n"; }

void write_json(const std::filesystem::path& path, const Json& json) {
  write_text(path, format_document(json));
}

void refuse(std::string_view source, std::string_view what, std::string_view rule,
            const Json& value) {
  throw std::runtime_error(
      fmt::format("{}: {} must be {}, got {}", source, what, rule, brief(value)));
}

const Json& member(const Json& document, const char* key, std::string_view source) {
  if (!document.is_object()) {
    refuse(source, "the document", fmt::format("an object with the key \"{}\"", key), document);
  }
  const auto found = document.find(key);
  if (found == document.end()) {
    throw std::runtime_error(fmt::format("{}: the key \"{}\" is missing", source, key));
  }
  return *found;
}

const Json& array_member(const Json& document, const char* key, std::string_view source) {
  const Json& value = member(document, key, source);
  if (!value.is_array()) refuse(source, key, "an array", value);
  return value;
}

bool get_whole(const Json& value, std::uint64_t limit, std::uint64_t& out) {
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

bool get_float_or_null(const Json& value, float& out) {
  if (value.is_null()) {
    out = std::numeric_limits<float>::quiet_NaN();
    return true;
  }
  if (!value.is_number()) return false;
  out = static_cast<float>(value.get<double>());
  return true;
}

Json short_numbers(std::span<const float> values, int digits) {
  Json numbers = Json::array();
  for (const float value : values) {
    numbers.push_back(std::isfinite(value) ? Json(std::stod(fmt::format("{:.{}g}", value, digits)))
                                           : Json());
  }
  return numbers;
}

std::uint64_t require_format(const Json& document, std::string_view format, std::uint64_t newest,
                             std::string_view source) {
  const Json& found = member(document, "format", source);
  if (!found.is_string() || !detail::is_name(found.get_ref<const std::string&>(), format)) {
    refuse(source, "format", fmt::format("\"{}\"", format), found);
  }
  const Json& version = member(document, "format_version", source);
  std::uint64_t number = 0;
  if (!get_whole(version, newest + 1, number) || number == 0) {
    refuse(source, "format_version",
           newest == 1 ? "1, the one this program reads"
                       : fmt::format("in [1, {}], which this program reads", newest),
           version);
  }
  return number;
}

const Json* Fields::find(const char* key) const {
  if (!object_.is_object()) refuse(source_, "the document", "an object", object_);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

Fields Fields::object(const char* key) const {
  const Json& value = member(object_, key, source_);
  if (!value.is_object()) refuse(source_, key, "an object", value);
  return {value, fmt::format("{}: {}", source_, key)};
}

std::string Fields::text(const char* key) const {
  const Json& value = member(object_, key, source_);
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    refuse(source_, key, "a text that is not empty", value);
  }
  return value.get<std::string>();
}

std::uint64_t Fields::whole(const char* key, std::uint64_t min) const {
  const Json& value = member(object_, key, source_);
  std::uint64_t number = 0;
  if (!get_whole(value, kMaxCount, number) || number < min) {
    refuse(source_, key, fmt::format("a whole number of at least {}", min), value);
  }
  return number;
}

std::uint64_t Fields::seed(const char* key) const {
  const Json& value = member(object_, key, source_);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : whole(key);
}

double Fields::finite(const char* key) const {
  const Json& value = member(object_, key, source_);
  if (!value.is_number() || !(std::abs(value.get<double>()) <= kMaxFinite)) {
    refuse(source_, key, "a finite number", value);
  }
  return value.get<double>();
}

double Fields::amount(const char* key) const {
  const Json& value = member(object_, key, source_);
  if (!value.is_number() || !(value.get<double>() >= 0.0 && value.get<double>() <= kMaxFinite)) {
    refuse(source_, key, "a finite number of at least 0", value);
  }
  return value.get<double>();
}

double Fields::number_or_nan(const char* key) const {
  const Json& value = member(object_, key, source_);
  float number = 0.0F;
  if (!get_float_or_null(value, number)) refuse(source_, key, "a number or null", value);
  return std::isfinite(number) ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tamis::runs
