// Refuses work that does not fit into memory before it begins: half-way the system would end it.
#pragma once

#include <string_view>

namespace tamis::detail {

// Throws std::runtime_error "<what> needs about ..." if these bytes are more than the machine has,
// or than the container or the process may use.
void require_memory(double bytes, std::string_view what);

}  // namespace tamis::detail
