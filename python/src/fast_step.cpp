#include "fast_step.h"

#include <memory>
#include <stdexcept>

#include "planned_batch.h"

namespace tamis::python {

namespace py = pybind11;

namespace {

struct BoundPruner {
  py::object owner;  // keeps the pruner alive
  Pruner* pruner = nullptr;
};

constexpr const char* kCapsuleName = "tamis.BoundPruner";

PyObject* call_step(PyObject* capsule, PyObject* const* arguments, Py_ssize_t num_arguments) {
  if (num_arguments != 3) {
    PyErr_SetString(PyExc_TypeError, "step takes begin, count and mean_loss");
    return nullptr;
  }
  const std::size_t begin = PyLong_AsSize_t(arguments[0]);
  const std::size_t count = PyLong_AsSize_t(arguments[1]);
  const double mean_loss = PyFloat_AsDouble(arguments[2]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  const auto* const bound =
      static_cast<const BoundPruner*>(PyCapsule_GetPointer(capsule, kCapsuleName));
  try {
    return PyFloat_FromDouble(step(*bound->pruner, begin, count, mean_loss));
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// The C API knows functions of three arguments by a flag, not by their type.
PyMethodDef step_definition = {
    "step", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call_step)), METH_FASTCALL,
    "step(begin, count, mean_loss, /): books a mean loss on samples [begin, begin + count) of the "
    "running plan, moves the position past them and returns their mean weight."};

}  // namespace

double step(Pruner& pruner, std::size_t begin, std::size_t count, double mean_loss) {
  const auto batch = planned_batch(pruner, begin, count);
  pruner.observe(batch, mean_loss);
  pruner.set_position(begin + batch.size());
  return running_plan(pruner).mean_weight(batch);
}

py::object make_step_function(const py::object& pruner) {
  auto bound = std::make_unique<BoundPruner>(BoundPruner{pruner, &pruner.cast<Pruner&>()});
  const auto capsule = py::reinterpret_steal<py::object>(
      PyCapsule_New(bound.get(), kCapsuleName, [](PyObject* object) {
        delete static_cast<BoundPruner*>(PyCapsule_GetPointer(object, kCapsuleName));
      }));
  if (!capsule) throw py::error_already_set();
  bound.release();
  return py::reinterpret_steal<py::object>(PyCFunction_New(&step_definition, capsule.ptr()));
}

}  // namespace tamis::python
