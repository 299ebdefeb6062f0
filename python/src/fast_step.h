// The call of every training step, without pybind11's dispatcher, which costs more than the step.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

#include "tamis/pruner.h"

namespace tamis::python {

// Books a mean loss on samples [begin, begin + count) of the running plan (fewer at its end), moves
// the position past them and returns their mean weight.
double step(Pruner& pruner, std::size_t begin, std::size_t count, double mean_loss);

// step(begin, count, mean_loss) of a Python Pruner as a built-in function with positional
// arguments.
pybind11::object make_step_function(const pybind11::object& pruner);

}  // namespace tamis::python
