#include "arrays.h"

#include <string>

namespace tamis::python {

namespace {

// Without a copy for everything that can share its memory.
py::array as_array(const py::object& object) {
  if (py::isinstance<py::array>(object)) return py::reinterpret_borrow<py::array>(object);
  const py::module_ numpy = py::module_::import("numpy");
  if (PyObject_CheckBuffer(object.ptr()) == 0 && py::hasattr(object, "__dlpack__") &&
      py::hasattr(numpy, "from_dlpack")) {
    return numpy.attr("from_dlpack")(object);
  }
  return numpy.attr("asarray")(object);
}

std::string describe(const py::array& array) { return py::str(array.dtype()); }

}  // namespace

Indices::Indices(const py::object& object) : array_(as_array(object)) {
  const char kind = array_.dtype().kind();
  if (kind != 'i' && kind != 'u' && array_.size() != 0) {
    throw py::type_error("indices must be whole numbers, got " + describe(array_));
  }
  if (array_.ndim() != 1) {
    throw py::value_error("indices must have one dimension, got " + std::to_string(array_.ndim()));
  }
  using Narrow = py::array_t<std::uint32_t, py::array::c_style>;
  using Wide = py::array_t<SampleIndex, py::array::c_style | py::array::forcecast>;
  const auto size = static_cast<std::size_t>(array_.size());
  if (py::isinstance<Narrow>(array_)) {
    span_ = std::span(static_cast<const std::uint32_t*>(array_.data()), size);
  } else {
    array_ = Wide(array_);
    span_ = std::span(static_cast<const SampleIndex*>(array_.data()), size);
  }
}

Losses::Losses(const py::object& object) {
  if (PyFloat_Check(object.ptr()) != 0) {
    is_mean_ = true;
    mean_ = object.cast<double>();
    return;
  }
  const py::array array = as_array(object);
  const char kind = array.dtype().kind();
  if (kind != 'f' && kind != 'i' && kind != 'u') {
    throw py::type_error("a loss must be a real number, got " + describe(array));
  }
  if (array.ndim() > 1) {
    throw py::value_error("a loss must be one number or one per sample, got " +
                          std::to_string(array.ndim()) + " dimensions");
  }
  is_mean_ = array.ndim() == 0;
  if (is_mean_) {
    mean_ = array.attr("item")().cast<double>();
  } else {
    values_ = decltype(values_)(array);
  }
}

}  // namespace tamis::python
