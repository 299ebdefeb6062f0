#include "runs/spec_json.h"

#include <cmath>

#include "tamis/scores/batch_loss.h"

namespace tamis::runs {

namespace {

constexpr const char* kInitialScore = "initial_score";
constexpr const char* kFirstBatch = "first-batch-loss";

}  // namespace

Json spec_to_json(const Spec& spec) {
  Json options = Json::object();
  for (const auto& [name, value] : spec.options) {
    if (name == kInitialScore && std::isnan(value)) {
      options[name] = kFirstBatch;
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
    spec.options[name] = value == kFirstBatch ? kFirstBatchLoss : options.finite(name.c_str());
  }
  return spec;
}

}  // namespace tamis::runs
