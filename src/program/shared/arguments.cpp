#include "program/shared/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

namespace tamis::program {

namespace {

std::string describe(CountRange range) {
  if (range.max == std::numeric_limits<std::uint64_t>::max()) {
    return fmt::format("a whole number of at least {}", range.min);
  }
  return fmt::format("a whole number in [{}, {}]", range.min, range.max);
}

[[noreturn]] void refuse(const std::string& name, std::string_view rule, const std::string& text) {
  throw UsageError(fmt::format("{} must be {}, got {}", name, rule, text));
}

std::uint64_t to_count(const std::string& name, const std::string& text, CountRange range) {
  const std::optional<std::uint64_t> count = parse_count(text);
  if (!count || *count < range.min || *count > range.max) refuse(name, describe(range), text);
  return *count;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_count(std::string text) {
  std::erase(text, '_');
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc{} && rest == end) return count;
  const std::optional<double> number = parse_number(text);
  if (!number || !(*number >= 0.0 && *number <= 0x1p53) || *number != std::floor(*number)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*number);
}

CLI::Option& add_text(CLI::App& command, const std::string& name, const std::string& type,
                      const std::string& help, std::function<void(const std::string&)> take) {
  return *command.add_option_function<std::string>(name, std::move(take), help)->type_name(type);
}

void add_count(CLI::App& command, const std::string& name, std::uint64_t& target, CountRange range,
               const std::string& help) {
  add_text(command, name, "COUNT", help, [&target, name, range](const std::string& text) {
    target = to_count(name, text, range);
  }).default_str(fmt::format("{}", target));
}

void add_counts(CLI::App& command, const std::string& name, std::vector<std::uint64_t>& targets,
                const std::string& help) {
  const auto take = [&targets, name](const std::vector<std::string>& texts) {
    targets.clear();
    for (const std::string& text : texts) {
      const std::optional<std::uint64_t> count = parse_count(text);
      constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
      if (!count) refuse(name, fmt::format("whole numbers in [0, {}]", kMax), text);
      targets.push_back(*count);
    }
  };
  command.add_option_function<std::vector<std::string>>(name, take, help)->type_name("COUNT...");
}

CLI::Option& add_path(CLI::App& command, const std::string& name, std::string& target,
                      const std::string& help) {
  return add_text(command, name, "TEXT", help, [&target, name](const std::string& text) {
    if (text.empty()) throw UsageError(fmt::format("{} must not be empty", name));
    target = text;
  });
}

void add_optional_count(CLI::App& command, const std::string& name, std::uint64_t& target,
                        std::uint64_t unsaid, const std::string& help) {
  add_text(command, name, "[COUNT]", help, [&target, name, unsaid](const std::string& text) {
    target = text.empty() ? unsaid : to_count(name, text, {.min = 1});
  }).expected(0, 1);
}

void add_share(CLI::App& command, const std::string& name, std::optional<double>& target,
               const std::string& help) {
  add_text(command, name, "NUMBER", help, [name, &target](const std::string& text) {
    target = parse_number(text);
    if (!target || !(*target >= 0.0 && *target <= 1.0)) refuse(name, "in [0, 1]", text);
  });
}

void add_delta(CLI::App& command, std::optional<double>& target) {
  add_share(command, "--delta", target,
            "share of the epochs that are pruned, in [0, 1]; later epochs use\n"
            "all data (default: the policy's own, see below)");
}

}  // namespace tamis::program
