// Arrays of any library as spans: numpy, torch, the buffer protocol, DLPack, sequences.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tamis/types.h"

namespace tamis::python {

namespace py = pybind11;

// Indices of a batch. Refers to the caller's memory if that is a contiguous array of int64 or
// uint32, otherwise to a copy.
class Indices {
 public:
  // Throws TypeError unless the object holds whole numbers and ValueError unless it has one
  // dimension: a float cannot tell 16,777,217 from its neighbour.
  explicit Indices(const py::object& object);

  // Calls function(std::span<const SampleIndex>) or function(std::span<const std::uint32_t>).
  template <typename Function>
  auto visit(Function&& function) const {
    return std::visit([&](auto span) { return function(span); }, span_);
  }

 private:
  py::array array_;  // keeps the memory alive
  std::variant<std::span<const SampleIndex>, std::span<const std::uint32_t>> span_;
};

// The losses of one step: one number, or one per sample.
class Losses {
 public:
  // Throws TypeError unless the object holds real numbers, ValueError if it has more than one
  // dimension.
  explicit Losses(const py::object& object);

  bool is_mean() const { return is_mean_; }
  double mean() const { return mean_; }
  std::span<const float> values() const {
    return {values_.data(), static_cast<std::size_t>(values_.size())};
  }

 private:
  bool is_mean_ = false;
  double mean_ = 0.0;
  py::array_t<float, py::array::c_style | py::array::forcecast> values_;
};

// A numpy array that owns the vector's memory.
template <typename T>
py::array_t<T> to_numpy(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  const auto size = static_cast<py::ssize_t>(owned->size());
  const T* const data = owned->data();
  const py::capsule owner(owned.get(), [](void* p) { delete static_cast<std::vector<T>*>(p); });
  owned.release();
  return py::array_t<T>(size, data, owner);
}

// A read-only numpy array of somebody else's memory, which lives as long as `owner`.
template <typename T>
py::array_t<T> view_as_numpy(std::span<const T> values, const py::handle& owner) {
  py::array_t<T> view(static_cast<py::ssize_t>(values.size()), values.data(), owner);
  view.attr("flags").attr("writeable") = false;
  return view;
}

}  // namespace tamis::python
