#include "arrays.h"

#include <nanobind/stl/string.h>

#include <string>
#include <string_view>

namespace tamis::python {

namespace {

// Without a copy for everything that can share its memory.
nb::object as_array(nb::handle object) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  if (PyObject_CheckBuffer(object.ptr()) == 0 && nb::hasattr(object, "__dlpack__") &&
      !nb::hasattr(object, "__array__")) {
    return numpy.attr("from_dlpack")(object);
  }
  return numpy.attr("asarray")(object);
}

std::string kind_of(const nb::object& array) {
  return nb::cast<std::string>(array.attr("dtype").attr("kind"));
}

std::size_t num_dimensions(const nb::object& array) {
  return nb::cast<std::size_t>(array.attr("ndim"));
}

std::string type_of(const nb::object& array) {
  const nb::object dtype = array.attr("dtype");
  return nb::str(dtype).c_str();
}

void require_real(const nb::object& array, const char* what) {
  const std::string kind = kind_of(array);
  if (kind == "f" || kind == "i" || kind == "u") return;
  throw nb::type_error(
      (std::string(what) + " must be a real number, got " + type_of(array)).c_str());
}

void require_one_dimension(const nb::object& array, const char* what) {
  const std::size_t dimensions = num_dimensions(array);
  if (dimensions == 1) return;
  throw nb::value_error(
      (std::string(what) + " must have one dimension, got " + std::to_string(dimensions)).c_str());
}

Buffer convert(const nb::object& array, const char* dtype) {
  return Buffer(nb::module_::import_("numpy").attr("ascontiguousarray")(array, dtype));
}

// The object's own memory if it is an array of T; an empty buffer otherwise.
template <typename T>
Buffer try_direct(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return {};
  try {
    Buffer buffer(object);
    if (buffer.holds<T>()) return buffer;
  } catch (const nb::python_error&) {  // not contiguous
  }
  return {};
}

}  // namespace

Buffer::Buffer(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT) != 0) {
    throw nb::python_error();
  }
}

template <typename T>
bool Buffer::holds() const {
  const std::string_view format = view_.format == nullptr ? "" : view_.format;
  const std::string_view wanted = std::is_same_v<T, float> ? "f" : "lq";
  return view_.buf != nullptr && view_.ndim == 1 && view_.itemsize == sizeof(T) &&
         format.size() == 1 && wanted.find(format) != std::string_view::npos;
}

Indices::Indices(nb::handle object) : buffer_(try_direct<SampleIndex>(object)) {
  if (buffer_.holds<SampleIndex>()) return;
  const nb::object array = as_array(object);
  const std::string kind = kind_of(array);
  if (kind != "i" && kind != "u" && num_dimensions(array) == 1 && nb::len(array) != 0) {
    throw nb::type_error(("indices must be whole numbers, got " + type_of(array)).c_str());
  }
  require_one_dimension(array, "indices");
  buffer_ = convert(array, "int64");
}

Losses::Losses(nb::handle object) {
  if (PyFloat_Check(object.ptr()) != 0) {
    is_mean_ = true;
    mean_ = nb::cast<double>(object);
    return;
  }
  buffer_ = try_direct<float>(object);
  if (buffer_.holds<float>()) return;
  const nb::object array = as_array(object);
  require_real(array, "a loss");
  const std::size_t dimensions = num_dimensions(array);
  if (dimensions > 1) {
    throw nb::value_error(("a loss must be one number or one per sample, got " +
                           std::to_string(dimensions) + " dimensions")
                              .c_str());
  }
  is_mean_ = dimensions == 0;
  if (is_mean_) {
    mean_ = nb::cast<double>(nb::float_(array.attr("item")()));
  } else {
    buffer_ = convert(array, "float32");
  }
}

Norms::Norms(nb::handle object) : is_given_(!object.is_none()) {
  if (!is_given_) return;
  buffer_ = try_direct<float>(object);
  if (buffer_.holds<float>()) return;
  const nb::object array = as_array(object);
  require_real(array, "a norm");
  require_one_dimension(array, "norms");
  buffer_ = convert(array, "float32");
}

}  // namespace tamis::python
