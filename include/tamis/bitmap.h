// Bitmap: one bit per sample.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tamis/array.h"

namespace tamis {

// A fixed number of bits in 64-bit words; bits past size() are always 0.
class Bitmap {
 public:
  Bitmap() = default;
  explicit Bitmap(std::size_t size, bool value = false);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  bool test(std::size_t i) const { return ((words_[i >> 6U] >> (i & 63U)) & 1U) != 0; }
  void set(std::size_t i) { words_[i >> 6U] |= std::uint64_t{1} << (i & 63U); }
  void clear(std::size_t i) { words_[i >> 6U] &= ~(std::uint64_t{1} << (i & 63U)); }

  // Number of bits that are 1.
  std::size_t count() const;

  // Intersection, union and difference with a bitmap of the same size.
  Bitmap& operator&=(const Bitmap& other);
  Bitmap& operator|=(const Bitmap& other);
  Bitmap& operator-=(const Bitmap& other);

  // Whoever writes words directly keeps the bits past size() at 0.
  std::span<std::uint64_t> words() { return {words_.data(), words_.size()}; }
  std::span<const std::uint64_t> words() const { return {words_.data(), words_.size()}; }

  friend bool operator==(const Bitmap& a, const Bitmap& b) {
    return a.size_ == b.size_ && std::equal(a.words_.begin(), a.words_.end(), b.words_.begin());
  }

 private:
  std::size_t size_ = 0;
  Array<std::uint64_t> words_;
};

}  // namespace tamis
