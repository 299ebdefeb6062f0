#include "training/trainer/sweep_methods.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tamis::training {

using runs::Sweep;

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

}  // namespace tamis::training
