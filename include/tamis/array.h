// Array: a large block of numbers, left uninitialised and laid out for random access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

namespace tamis {

namespace detail {
// Aligned to 2 MiB and backed by huge pages where the system has them, if `bytes` is large.
void* allocate_block(std::size_t bytes);
void free_block(void* block, std::size_t bytes) noexcept;
}  // namespace detail

// Owns `size` elements of a trivial type. Unlike std::vector it does not fill them.
template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  explicit Array(std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(detail::allocate_block(size * sizeof(T)))),
        size_(size) {}
  Array(std::size_t size, T value) : Array(size) {
    for (std::size_t i = 0; i < size; ++i) data_[i] = value;
  }
  Array(const Array& other) : Array(other.size_) {
    if (size_ > 0) std::memcpy(data_, other.data_, size_ * sizeof(T));
  }
  Array(Array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Array& operator=(Array other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Array() {
    if (data_ != nullptr) detail::free_block(data_, size_ * sizeof(T));
  }

  std::size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tamis
