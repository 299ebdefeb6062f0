// Arrays of any library as spans: numpy, torch, the buffer protocol, DLPack, sequences.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tamis/types.h"

namespace tamis::python {

namespace nb = nanobind;

// The memory of an object with the buffer protocol, for as long as this lives.
class Buffer {
 public:
  Buffer() = default;
  // Contiguous memory only. Raises the object's own error if it has none.
  explicit Buffer(nb::handle object);
  Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, {})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }
  ~Buffer() { PyBuffer_Release(&view_); }

  // Of `size` items of one dimension, as of T.
  template <typename T>
  bool holds() const;
  template <typename T>
  std::span<const T> as() const {
    return {static_cast<const T*>(view_.buf), static_cast<std::size_t>(view_.len) / sizeof(T)};
  }

 private:
  Py_buffer view_ = {};
};

// Indices of samples: the caller's memory if that is a contiguous array of int64, else a copy.
class Indices {
 public:
  // Throws TypeError unless the object holds whole numbers and ValueError unless it has one
  // dimension: a float cannot tell 16,777,217 from its neighbour.
  explicit Indices(nb::handle object);
  std::span<const SampleIndex> span() const { return buffer_.as<SampleIndex>(); }

 private:
  Buffer buffer_;
};

// The losses of one step: one number, or one per sample.
class Losses {
 public:
  // Throws TypeError unless the object holds real numbers, ValueError if it has more than one
  // dimension.
  explicit Losses(nb::handle object);

  bool is_mean() const { return is_mean_; }
  double mean() const { return mean_; }
  std::span<const float> values() const { return buffer_.as<float>(); }

 private:
  bool is_mean_ = false;
  double mean_ = 0.0;
  Buffer buffer_;
};

// The norms of one step: one per sample, or None.
class Norms {
 public:
  // Throws TypeError unless the object holds real numbers, ValueError unless it has one dimension.
  explicit Norms(nb::handle object);
  std::optional<std::span<const float>> values() const {
    return is_given_ ? std::optional(buffer_.as<float>()) : std::nullopt;
  }

 private:
  bool is_given_;
  Buffer buffer_;
};

template <typename T>
using NumpyArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// A numpy array that owns the vector's memory.
template <typename T>
NumpyArray<T> to_numpy(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = owned->data();
  const std::size_t size = owned->size();
  const nb::capsule owner(owned.get(),
                          [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  owned.release();
  return NumpyArray<T>(data, {size}, owner);
}

}  // namespace tamis::python
