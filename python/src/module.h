// The parts of the native module tamis._core.
#pragma once

#include <pybind11/pybind11.h>

namespace tamis {
class Pruner;
}

namespace tamis::python {

void bind_registry(pybind11::module_& module);
void bind_epoch_plan(pybind11::module_& module);
void bind_pruner(pybind11::module_& module);
void bind_recording(pybind11::class_<Pruner>& pruner);
void bind_distributed(pybind11::module_& module);

}  // namespace tamis::python
