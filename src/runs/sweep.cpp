#include "runs/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/check.h"
#include "runs/seal.h"

namespace tamis::runs {

namespace {

namespace fs = std::filesystem;

// Version 1 had no checksum.
constexpr SealedFormat kSweepFormat = {
    .name = "tamis-sweep",
    .newest = 2,
    .first_sealed = 2,
    .cure = "whoever changed it removes the member \"crc32c\" and sets format_version to 1"};

}  // namespace

std::string Sweep::method_name(double value) const {
  return fmt::format("{}{}{}={}", method, method.find(':') == std::string::npos ? ':' : ',', option,
                     value);
}

Sweep parse_sweep(std::string_view method, std::string_view text) {
  const std::size_t equals = text.find('=');
  detail::require(equals != std::string_view::npos && equals > 0, "sweep", "vary",
                  "OPTION=VALUE,VALUE,...", text);
  Sweep sweep{.method = std::string(method), .option = option_name(text.substr(0, equals))};
  std::string_view rest = text.substr(equals + 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    sweep.values.push_back(parse_option_value(sweep.option, rest.substr(0, comma)));
    detail::require(!std::isnan(sweep.values.back()), "sweep", sweep.option, "a number",
                    rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  detail::require(!sweep.values.empty(), "sweep", "vary", "OPTION=VALUE,VALUE,...", text);
  std::sort(sweep.values.begin(), sweep.values.end());
  if (const auto twice = std::adjacent_find(sweep.values.begin(), sweep.values.end());
      twice != sweep.values.end()) {
    detail::require(false, "sweep", "values", "there once each", detail::concat(*twice, " twice"));
  }
  return sweep;
}

std::vector<Method> sweep_methods(const Sweep& sweep, const MethodOptions& options) {
  std::vector<Method> methods;
  for (const double value : sweep.values) {
    methods.push_back(parse_method(sweep.method_name(value), options));
  }
  return methods;
}

Json to_json(const Sweep& sweep) {
  return {{"format", kSweepFormat.name},
          {"format_version", kSweepFormat.newest},
          {"method", sweep.method},
          {"option", sweep.option},
          {"values", sweep.values}};
}

Sweep extend_sweep(const fs::path& folder, Sweep sweep) {
  if (!fs::exists(folder / kSweepFile)) return sweep;
  const Sweep before = read_sweep(folder);
  if (before.method != sweep.method || before.option != sweep.option) {
    throw std::runtime_error(fmt::format(
        "{}: holds a sweep of {} of {}; --overwrite replaces it, --out chooses another folder",
        folder.native(), before.option, before.method));
  }
  sweep.values.insert(sweep.values.end(), before.values.begin(), before.values.end());
  std::sort(sweep.values.begin(), sweep.values.end());
  sweep.values.erase(std::unique(sweep.values.begin(), sweep.values.end()), sweep.values.end());
  return sweep;
}

void write_sweep(const fs::path& folder, const Sweep& sweep) {
  write_sealed_json(folder / kSweepFile, to_json(sweep));
}

Sweep read_sweep(const fs::path& folder) {
  const std::string source = (folder / kSweepFile).native();
  if (!fs::exists(source)) {
    throw std::runtime_error(
        fmt::format("{}: holds no sweep (no {})", folder.native(), kSweepFile));
  }
  const Json document = read_sealed_json(source, kSweepFormat).json;
  const Fields fields(document, source);
  Sweep sweep{.method = fields.text("method"), .option = fields.text("option")};
  for (const Json& value : array_member(document, "values", source)) {
    if (!value.is_number()) refuse(source, "values", "numbers", value);
    sweep.values.push_back(value.get<double>());
  }
  return sweep;
}

}  // namespace tamis::runs
