// A Communicator written in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "tamis/communicator.h"

namespace tamis::python {

// An object with rank, size and time_limit (seconds), reduce(numbers, "sum" | "min" | "max") of an
// int64 array, and gather(bytes), which gives the bytes of every rank. None: null.
std::shared_ptr<Communicator> make_communicator(nanobind::object ranks);

}  // namespace tamis::python
