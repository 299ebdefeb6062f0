#include "runs/spec_json.h"

#include <cmath>

#include "tamis/method.h"

namespace tamis::runs {

Json spec_to_json(const Spec& spec) {
  Json options = Json::object();
  for (const auto& [name, value] : spec.options) {
    if (std::isnan(value)) {
      options[name] = format_option_value(name, value);
    } else {
      options[name] = value;
    }
  }
  return {{"name", spec.name}, {"options", options}};
}

Spec spec_from_json(const Json& json, const std::string& source) {
  const Fields fields(json, source);
  Spec spec{fields.text("name")};
  const Fields options = fields.object("options");
  for (const auto& [name, value] : options.json().items()) {
    spec.options[name] = value.is_string()
                             ? parse_option_value(name, value.get_ref<const std::string&>())
                             : options.finite(name.c_str());
  }
  return spec;
}

}  // namespace tamis::runs
