// What a text of JSON costs to parse, looked at before: nlohmann's parser ends the program where
// memory runs out, and looks through all members of an object for each further one.
#pragma once

#include <string_view>

namespace tamis::runs {

// Throws std::runtime_error with the source if the text is nested too deeply for what walks through
// a document, if an object has too many members, or if the memory is not there. Text that is no
// JSON may pass.
void check_cost(std::string_view text, std::string_view source);

}  // namespace tamis::runs
