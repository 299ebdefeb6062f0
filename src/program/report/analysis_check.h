// Checks analysis.json before it becomes part of a page.
#pragma once

#include <string>

#include "runs/json.h"

namespace tamis::program {

// Throws std::runtime_error that begins with `source` unless the document has all that the page
// shows of it, each of its kind.
void check_analysis(const runs::Json& analysis, const std::string& source);

}  // namespace tamis::program
