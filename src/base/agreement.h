// What all ranks must agree on before they go on.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tamis/communicator.h"

namespace tamis::detail {

// Runs `action` on this rank, then compares notes: if it threw on any rank, every rank throws; the
// ranks that did not fail throw std::runtime_error with the number of the first rank that did and
// its message.
void together(Communicator& communicator, const std::function<void()>& action);

// Throws std::runtime_error on every rank unless all have the same text: one line per field, its
// name and its value. The message names the first rank that differs from rank 0, the field and both
// values.
void require_same(Communicator& communicator, std::string_view fields);

}  // namespace tamis::detail
