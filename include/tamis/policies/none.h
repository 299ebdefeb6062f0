// No pruning: the full data set in every epoch; the baseline, through the same code path.
#pragma once

#include <memory>

#include "tamis/policy.h"

namespace tamis {

std::unique_ptr<Policy> make_none();

}  // namespace tamis
