#include "training/trainer/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/check.h"
#include "training/trainer/run_folder.h"

namespace tamis::training {

namespace {

namespace fs = std::filesystem;
using detail::concat;

constexpr const char* kFile = "sweep.json";
constexpr std::string_view kFormat = "tamis-sweep";
constexpr int kFormatVersion = 1;

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
    detail::require(false, "sweep", "values", "there once each", concat(*twice, " twice"));
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
  return {{"format", kFormat},
          {"format_version", kFormatVersion},
          {"method", sweep.method},
          {"option", sweep.option},
          {"values", sweep.values}};
}

Sweep extend_sweep(const fs::path& folder, Sweep sweep) {
  if (!fs::exists(folder / kFile)) return sweep;
  const Sweep before = read_sweep(folder);
  if (before.method != sweep.method || before.option != sweep.option) {
    throw std::runtime_error(concat(folder.native(), ": holds a sweep of ", before.option, " of ",
                                    before.method, "; --overwrite replaces it, --out chooses",
                                    " another folder"));
  }
  sweep.values.insert(sweep.values.end(), before.values.begin(), before.values.end());
  std::sort(sweep.values.begin(), sweep.values.end());
  sweep.values.erase(std::unique(sweep.values.begin(), sweep.values.end()), sweep.values.end());
  return sweep;
}

void write_sweep(const fs::path& folder, const Sweep& sweep) {
  write_json(folder / kFile, to_json(sweep));
}

Sweep read_sweep(const fs::path& folder) {
  const fs::path path = folder / kFile;
  if (!fs::exists(path)) {
    throw std::runtime_error(concat(folder.native(), ": holds no sweep (no ", kFile, ")"));
  }
  const Json json = read_json(path);
  try {
    if (json.at("format") != kFormat || json.at("format_version").get<int>() > kFormatVersion) {
      throw std::runtime_error(concat(path.native(), ": not a sweep that this tamis can read"));
    }
    return {.method = json.at("method").get<std::string>(),
            .option = json.at("option").get<std::string>(),
            .values = json.at("values").get<std::vector<double>>()};
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat(path.native(), ": not as tamis writes it: ", error.what()));
  }
}

}  // namespace tamis::training
