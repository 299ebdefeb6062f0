// The registry as plain Python data.
#include <nanobind/stl/string_view.h>

#include "module.h"
#include "tamis/registry.h"

namespace tamis::python {

namespace nb = nanobind;

namespace {

nb::list describe_options(const std::vector<OptionInfo>& options) {
  nb::list all;
  for (const OptionInfo& option : options) {
    nb::dict entry;
    entry["name"] = option.name;
    entry["default"] = option.default_value;
    entry["rule"] = option.rule.text;
    entry["help"] = option.help;
    all.append(entry);
  }
  return all;
}

// {name: describe(info)} in the order of the registry.
template <typename Infos, typename Function>
nb::dict by_name(const Infos& infos, Function&& describe) {
  nb::dict all;
  for (const auto& info : infos) {
    nb::dict entry;
    entry["summary"] = info.summary;
    describe(entry, info);
    all[nb::cast(info.name)] = entry;
  }
  return all;
}

nb::dict scores() {
  return by_name(registered_scorers(), [](nb::dict& entry, const ScorerInfo& info) {
    entry["options"] = describe_options(info.options);
  });
}

nb::dict policies() {
  return by_name(registered_policies(), [](nb::dict& entry, const PolicyInfo& info) {
    entry["default_score"] = info.default_score;
    entry["options"] = describe_options(info.options);
  });
}

nb::dict methods() {
  return by_name(registered_methods(), [](nb::dict& entry, const MethodInfo& info) {
    entry["policy"] = info.policy;
    entry["score"] = info.score;
    entry["paper"] = info.paper;
  });
}

}  // namespace

void bind_registry(nb::module_& module) {
  module.def("scores", &scores,
             "The registered scores by name: summary and options (name, default, rule, help).");
  module.def("policies", &policies,
             "The registered policies by name: summary, default score and options.");
  module.def("methods", &methods,
             "The registered methods by name: summary, policy, score and paper.");
}

}  // namespace tamis::python
