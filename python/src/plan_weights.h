// Weights of a batch as numpy arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>

#include "tamis/epoch_plan.h"

namespace tamis::python {

// One float32 per sample. Throw std::out_of_range.
nanobind::object weights_at(const EpochPlan& plan, std::size_t begin, std::size_t count);
nanobind::object weights_of(const EpochPlan& plan, std::span<const SampleIndex> samples);

}  // namespace tamis::python
