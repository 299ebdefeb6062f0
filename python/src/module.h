// The parts of the native module tamis._core.
#pragma once

#include <nanobind/nanobind.h>

namespace tamis::python {

void bind_registry(nanobind::module_& module);
void bind_epoch_plan(nanobind::module_& module);
void bind_pruner(nanobind::module_& module);
void bind_loss_book(nanobind::module_& module);
void bind_watched_rows(nanobind::module_& module);

}  // namespace tamis::python
