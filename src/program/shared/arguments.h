// Numbers on the command line, checked by one rule and refused with one kind of message.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tamis::program {

// A mistake on the command line: the program exits with 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `call`; an argument that it refuses is a mistake on the command line.
template <typename Call>
auto as_usage(Call call) {
  try {
    return call();
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

// The whole text as a number; empty if it is none. Takes inf and nan, but no hexadecimal digits.
std::optional<double> parse_number(std::string_view text);

// Whole numbers up to 2^64 - 1 exactly; those with an exponent as far as a double holds them. Also
// takes 1_000_000. Empty if the text is none.
std::optional<std::uint64_t> parse_count(std::string text);

// A whole number in [min, max].
struct CountRange {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};

// Adds `--name TYPE`; `take` gets its text when the command line is parsed.
CLI::Option& add_text(CLI::App& command, const std::string& name, const std::string& type,
                      const std::string& help, std::function<void(const std::string&)> take);

// Adds `--name COUNT`. The default is what `target` holds. Also takes 1e6 and 1_000_000 for a
// million.
void add_count(CLI::App& command, const std::string& name, std::uint64_t& target, CountRange range,
               const std::string& help);

// Adds `--name COUNT...`, each any whole number of 64 bits.
void add_counts(CLI::App& command, const std::string& name, std::vector<std::uint64_t>& targets,
                const std::string& help);

// Adds `--name PATH`. An empty path is a mistake, such as a variable that is not set: it must not
// count as a flag that was not given.
CLI::Option& add_path(CLI::App& command, const std::string& name, std::string& target,
                      const std::string& help);

// Adds `--name X`, in [0, 1].
void add_share(CLI::App& command, const std::string& name, std::optional<double>& target,
               const std::string& help);

// Adds `--name [COUNT]`, at least 1. `target` becomes `unsaid` if no number follows.
void add_optional_count(CLI::App& command, const std::string& name, std::uint64_t& target,
                        std::uint64_t unsaid, const std::string& help);

// Adds `--delta X`, in [0, 1]; unset, the policy's own.
void add_delta(CLI::App& command, std::optional<double>& target);

// The largest number of samples that a data set may have.
inline constexpr std::uint64_t kMaxSamples = std::numeric_limits<std::uint32_t>::max();

}  // namespace tamis::program
