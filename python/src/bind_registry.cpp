// The registry as plain Python data.
#include <pybind11/stl.h>

#include <string>

#include "module.h"
#include "tamis/registry.h"

namespace tamis::python {

namespace py = pybind11;

namespace {

py::list describe_options(const std::vector<OptionInfo>& options) {
  py::list all;
  for (const OptionInfo& option : options) {
    py::dict entry;
    entry["name"] = option.name;
    entry["default"] = option.default_value;
    entry["rule"] = option.rule;
    entry["help"] = option.help;
    all.append(entry);
  }
  return all;
}

py::dict describe_scores() {
  py::dict all;
  for (const ScorerInfo& info : registered_scorers()) {
    py::dict entry;
    entry["summary"] = info.summary;
    entry["options"] = describe_options(info.options);
    all[py::str(std::string(info.name))] = entry;
  }
  return all;
}

py::dict describe_policies() {
  py::dict all;
  for (const PolicyInfo& info : registered_policies()) {
    py::dict entry;
    entry["summary"] = info.summary;
    entry["default_score"] = info.default_score;
    entry["options"] = describe_options(info.options);
    all[py::str(std::string(info.name))] = entry;
  }
  return all;
}

}  // namespace

void bind_registry(py::module_& module) {
  module.def("scores", &describe_scores,
             "The registered scores by name: summary and options (name, default, rule, help).");
  module.def("policies", &describe_policies,
             "The registered policies by name: summary, default score and options.");
}

}  // namespace tamis::python
