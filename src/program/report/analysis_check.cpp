#include "program/report/analysis_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tamis::program {

namespace {

using runs::Json;

enum class Kind { number, numbers, text };

// Members on the way to a value, each with what it may be: "spectra?" may be null, and then there
// is nothing to check behind it; "scores*" is an array, whose entries are checked one by one.
struct Rule {
  std::string_view path;
  Kind kind;
};

constexpr Rule kRules[] = {
    {"recording/num_samples", Kind::number},
    {"recording/num_recorded", Kind::number},
    {"recording/num_epochs", Kind::number},
    {"recording/batch_size", Kind::number},
    {"why_no_signal", Kind::text},
    {"spectra?/segment_length", Kind::number},
    {"spectra?/num_samples", Kind::number},
    {"spectra?/cutoff", Kind::number},
    {"spectra?/num_frequencies", Kind::number},
    {"spectra?/num_noise_above", Kind::number},
    {"spectra?/frequencies", Kind::numbers},
    {"spectra?/signal", Kind::numbers},
    {"spectra?/noise", Kind::numbers},
    {"signal_to_noise?/after*/alpha", Kind::number},
    {"signal_to_noise?/after*/over_visits", Kind::number},
    {"signal_to_noise?/after*/between_samples", Kind::number},
    {"decomposition?/largest_error", Kind::number},
    {"series?/sample", Kind::number},
    {"series?/batch_loss", Kind::numbers},
    {"series?/sample_loss", Kind::numbers},
    {"series?/signal", Kind::numbers},
    {"series?/score", Kind::numbers},
    {"fidelity/truth", Kind::text},
    {"fidelity/top_share", Kind::number},
    {"fidelity/epochs", Kind::numbers},
    {"fidelity/scores*/name", Kind::text},
    {"fidelity/scores*/sees", Kind::text},
    {"fidelity/scores*/spearman", Kind::numbers},
    {"fidelity/scores*/pearson", Kind::numbers},
    {"fidelity/scores*/top_overlap", Kind::numbers},
    {"fidelity/alphas*/options/alpha", Kind::number},
    {"fidelity/alphas*/spearman", Kind::numbers},
    {"fidelity/alphas*/pearson", Kind::numbers},
    {"fidelity/alphas*/top_overlap", Kind::numbers},
};

// Null stands for a number that is not defined.
bool is_number(const Json& value) { return value.is_number() || value.is_null(); }

void check_value(const Json& value, Kind kind, std::string_view key, const std::string& source) {
  switch (kind) {
    case Kind::number:
      if (!is_number(value)) runs::refuse(source, key, "a number or null", value);
      return;
    case Kind::numbers:
      if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_number)) {
        runs::refuse(source, key, "an array of numbers or nulls", value);
      }
      return;
    case Kind::text:
      if (!value.is_string()) runs::refuse(source, key, "a text", value);
      return;
  }
}

void check_path(const Json& parent, std::string_view path, Kind kind, const std::string& source) {
  const std::size_t end = std::min(path.find('/'), path.size());
  std::string key(path.substr(0, end));
  const char mark = key.back() == '?' || key.back() == '*' ? key.back() : ' ';
  if (mark != ' ') key.pop_back();
  const Json& value = mark == '*' ? runs::array_member(parent, key.c_str(), source)
                                  : runs::member(parent, key.c_str(), source);
  if (mark == '?' && value.is_null()) return;
  if (end == path.size()) return check_value(value, kind, key, source);
  const std::string_view rest = path.substr(end + 1);
  const std::string here = fmt::format("{}: {}", source, key);
  if (mark != '*') return check_path(value, rest, kind, here);
  for (const Json& entry : value) check_path(entry, rest, kind, here);
}

}  // namespace

void check_analysis(const Json& analysis, const std::string& source) {
  for (const Rule& rule : kRules) check_path(analysis, rule.path, rule.kind, source);
}

}  // namespace tamis::program
