// Specs of scores and policies as JSON: {"name": ..., "options": {...}}.
#pragma once

#include <string>

#include "runs/json.h"
#include "tamis/types.h"

namespace tamis::runs {

Json spec_to_json(const Spec& spec);
// Throws std::runtime_error that begins with `source`.
Spec spec_from_json(const Json& json, const std::string& source);

}  // namespace tamis::runs
