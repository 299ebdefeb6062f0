// The methods of a sweep, from what the user wrote.
#pragma once

#include <string_view>
#include <vector>

#include "runs/sweep.h"
#include "training/trainer/methods.h"

namespace tamis::training {

// Reads "alpha=0.5,0.7,0.9". Throws std::invalid_argument if it is not of that form or has a value
// twice.
runs::Sweep parse_sweep(std::string_view method, std::string_view text);

// One method per value. Throws std::invalid_argument if the method has no such option or a value is
// out of range.
std::vector<Method> sweep_methods(const runs::Sweep& sweep, const MethodOptions& options);

}  // namespace tamis::training
