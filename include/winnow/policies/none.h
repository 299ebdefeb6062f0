// No pruning: the full data set in every epoch; the baseline, through the same code path.
#pragma once

#include <memory>

#include "winnow/policy.h"

namespace winnow {

std::unique_ptr<Policy> make_none();

}  // namespace winnow
