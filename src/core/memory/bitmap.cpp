#include "tamis/bitmap.h"

#include "base/simd/kernels.h"

namespace tamis {

Bitmap::Bitmap(std::size_t size, bool value)
    : size_(size), words_((size + 63) / 64, value ? ~std::uint64_t{0} : 0) {
  if (value && size % 64 != 0) words_[words_.size() - 1] = (std::uint64_t{1} << (size % 64)) - 1;
}

Bitmap& Bitmap::operator&=(const Bitmap& other) {
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  return *this;
}

Bitmap& Bitmap::operator|=(const Bitmap& other) {
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  return *this;
}

Bitmap& Bitmap::operator-=(const Bitmap& other) {
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= ~other.words_[w];
  return *this;
}

std::size_t Bitmap::count() const {
  return detail::kernels().count_ones(words_.data(), words_.size());
}

}  // namespace tamis
