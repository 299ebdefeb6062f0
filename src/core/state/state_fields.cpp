#include "core/state/state_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <system_error>

#include "base/check.h"
#include "tamis/registry.h"

namespace tamis::detail {
namespace {

constexpr std::string_view kScorePrefix = "score.";
constexpr std::string_view kPolicyPrefix = "policy.";
// Options that are written only where they are set.
constexpr std::string_view kSetOnly[] = {"homogeneous_batch_size", "min_per_class", "target_prune"};

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

template <typename Number>
Number to_number(const SafetensorsReader& file, std::string_view key, std::string_view text,
                 std::string_view kind) {
  const std::optional<Number> value = parse<Number>(text);
  if (!value) file.fail(concat("field ", key, " must be ", kind, ", got ", text));
  return *value;
}

template <typename Number>
Number read_number(const SafetensorsReader& file, std::string_view key, std::string_view kind) {
  return to_number<Number>(file, key, read_text(file, key), kind);
}

void write_spec(std::string_view kind, std::string_view prefix, const Spec& spec, Metadata& out) {
  out.emplace_back(kind, spec.name);
  write_numbers(prefix, spec.options, out);
}

// "size low high center; ..."
std::string groups_to_text(const std::vector<ScoreGroup>& groups) {
  std::string text;
  for (const ScoreGroup& group : groups) {
    text += std::to_string(group.size) + ' ' + to_text(static_cast<double>(group.low)) + ' ' +
            to_text(static_cast<double>(group.high)) + ' ' + to_text(group.center) + ';';
  }
  return text;
}

std::vector<ScoreGroup> groups_from_text(const SafetensorsReader& file, std::string_view text) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::string_view whole = text;
  std::vector<ScoreGroup> groups;
  while (!text.empty()) {
    std::array<double, 4> fields{};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::size_t length = text.find(i < 3 ? ' ' : ';');
      const std::optional<double> value =
          length < text.size() ? parse<double>(text.substr(0, length)) : std::nullopt;
      if (!value) file.fail(concat("field report.groups must be four numbers each, got ", text));
      fields[i] = *value;
      text.remove_prefix(length + 1);
    }
    const auto low = static_cast<float>(fields[1]);
    const auto high = static_cast<float>(fields[2]);
    // The comparisons are false for NaN.
    const bool is_size = fields[0] >= 1.0 && fields[0] <= 0x1p53;
    if (!is_size || !std::isfinite(low) || !(low <= high && high < kInfinity) ||
        !std::isfinite(fields[3])) {
      file.fail(concat("field report.groups must be groups of at least one sample with finite ",
                       "scores, got ", whole));
    }
    groups.push_back({.size = static_cast<std::size_t>(fields[0]),
                      .low = low,
                      .high = high,
                      .center = fields[3]});
  }
  return groups;
}

template <typename Info>
std::string default_in(std::span<const Info> all, std::string_view name, std::string_view option) {
  for (const Info& info : all) {
    if (info.name != name) continue;
    for (const OptionInfo& known : info.options) {
      if (known.name == option) return to_text(known.default_value);
    }
  }
  return "not set";
}

// The default of an option of a score or policy as text.
std::string default_of(std::string_view key, const PrunerOptions& options) {
  if (key.starts_with(kScorePrefix)) {
    return default_in(registered_scorers(), options.score->name, key.substr(kScorePrefix.size()));
  }
  if (key.starts_with(kPolicyPrefix)) {
    return default_in(registered_policies(), options.policy.name, key.substr(kPolicyPrefix.size()));
  }
  return "not set";
}

template <typename Number>
void read_optional(const SafetensorsReader& file, std::string_view key,
                   std::optional<Number>& value) {
  if (file.find_metadata(key) != nullptr) value = read_number<Number>(file, key, "a number");
}

}  // namespace

std::string to_text(double value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

void write_numbers(std::string_view prefix, const OptionMap& numbers, Metadata& out) {
  for (const auto& [name, value] : numbers) {
    out.emplace_back(std::string(prefix) + name, to_text(value));
  }
}

void write_options(const PrunerOptions& options, Metadata& out) {
  out.emplace_back("num_samples", std::to_string(options.num_samples));
  out.emplace_back("num_epochs", std::to_string(options.num_epochs));
  out.emplace_back("seed", std::to_string(options.seed));
  out.emplace_back("delta", to_text(options.delta.value()));
  write_spec("score", kScorePrefix, options.score.value(), out);
  write_spec("policy", kPolicyPrefix, options.policy, out);
  if (options.homogeneous_batch_size > 0) {
    out.emplace_back("homogeneous_batch_size", std::to_string(options.homogeneous_batch_size));
  }
  if (options.min_per_class > 0.0) {
    out.emplace_back("min_per_class", to_text(options.min_per_class));
  }
  if (options.target_prune) out.emplace_back("target_prune", to_text(*options.target_prune));
}

void write_report(const SelectionReport& report, Metadata& out) {
  const auto write_real = [&](const char* key, const std::optional<double>& value) {
    if (value) out.emplace_back(key, to_text(*value));
  };
  const auto write_count = [&](const char* key, const std::optional<std::size_t>& value) {
    if (value) out.emplace_back(key, std::to_string(*value));
  };
  write_real("report.threshold", report.threshold);
  write_count("report.num_below", report.num_below);
  write_count("report.num_kept_of_below", report.num_kept_of_below);
  if (!report.groups.empty()) out.emplace_back("report.groups", groups_to_text(report.groups));
  write_count("report.window_begin", report.window_begin);
  write_count("report.window_end", report.window_end);
  write_real("report.within_group_sum_of_squares", report.within_group_sum_of_squares);
  write_count("report.num_restored", report.num_restored);
  write_real("report.prune_ratio", report.prune_ratio);
  write_real("report.lowest_reachable", report.lowest_reachable);
  write_real("report.highest_reachable", report.highest_reachable);
}

const std::string& read_text(const SafetensorsReader& file, std::string_view key) {
  const std::string* const text = file.find_metadata(key);
  if (text == nullptr) file.fail(concat("field ", key, " is missing"));
  return *text;
}

std::uint64_t read_integer(const SafetensorsReader& file, std::string_view key) {
  return read_number<std::uint64_t>(file, key, "a whole number");
}

double read_real(const SafetensorsReader& file, std::string_view key) {
  return read_number<double>(file, key, "a number");
}

OptionMap read_numbers(const SafetensorsReader& file, std::string_view prefix) {
  OptionMap numbers;
  for (const auto& [key, text] : file.metadata()) {
    if (!key.starts_with(prefix)) continue;
    numbers.emplace(key.substr(prefix.size()), to_number<double>(file, key, text, "a number"));
  }
  return numbers;
}

PrunerOptions read_options(const SafetensorsReader& file) {
  PrunerOptions options{.num_samples = static_cast<std::size_t>(read_integer(file, "num_samples")),
                        .num_epochs = read_integer(file, "num_epochs"),
                        .policy = {read_text(file, "policy"), read_numbers(file, kPolicyPrefix)},
                        .score = Spec{read_text(file, "score"), read_numbers(file, kScorePrefix)},
                        .delta = read_real(file, "delta"),
                        .seed = read_integer(file, "seed")};
  if (file.find_metadata("homogeneous_batch_size") != nullptr) {
    options.homogeneous_batch_size =
        static_cast<std::size_t>(read_integer(file, "homogeneous_batch_size"));
  }
  if (file.find_metadata("min_per_class") != nullptr) {
    options.min_per_class = read_real(file, "min_per_class");
  }
  read_optional(file, "target_prune", options.target_prune);
  return options;
}

SelectionReport read_report(const SafetensorsReader& file) {
  SelectionReport report;
  read_optional(file, "report.threshold", report.threshold);
  read_optional(file, "report.num_below", report.num_below);
  read_optional(file, "report.num_kept_of_below", report.num_kept_of_below);
  if (const std::string* groups = file.find_metadata("report.groups")) {
    report.groups = groups_from_text(file, *groups);
  }
  read_optional(file, "report.window_begin", report.window_begin);
  read_optional(file, "report.window_end", report.window_end);
  read_optional(file, "report.within_group_sum_of_squares", report.within_group_sum_of_squares);
  read_optional(file, "report.num_restored", report.num_restored);
  read_optional(file, "report.prune_ratio", report.prune_ratio);
  read_optional(file, "report.lowest_reachable", report.lowest_reachable);
  read_optional(file, "report.highest_reachable", report.highest_reachable);
  return report;
}

void check_same_options(const SafetensorsReader& file, const PrunerOptions& options) {
  Metadata ours;
  write_options(options, ours);
  const auto fail = [&](std::string_view key, std::string_view theirs, std::string_view wanted) {
    file.fail(concat("belongs to a run with other options: ", key, " is ", theirs,
                     " in the file, but ", wanted, " in this run"));
  };
  for (const auto& [key, value] : ours) {
    const std::string* const theirs = file.find_metadata(key);
    // A file of a version that did not know the option was written under its default.
    const std::string known = theirs != nullptr ? *theirs : default_of(key, options);
    if (known != value) fail(key, known, value);
  }
  const auto is_ours = [&](std::string_view key) {
    return std::any_of(ours.begin(), ours.end(),
                       [&](const auto& field) { return field.first == key; });
  };
  for (const auto& [key, theirs] : file.metadata()) {
    const bool is_option =
        key.starts_with(kScorePrefix) || key.starts_with(kPolicyPrefix) ||
        std::find(std::begin(kSetOnly), std::end(kSetOnly), key) != std::end(kSetOnly);
    if (is_option && !is_ours(key)) fail(key, theirs, "not set");
  }
}

}  // namespace tamis::detail
