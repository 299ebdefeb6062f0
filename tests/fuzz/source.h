// Source: what a fuzzer's bytes decide, one choice after the other. When they run out, everything
// is 0, so that short inputs are small changes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tamis::fuzz {

class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  bool is_empty() const { return left_.empty(); }

  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  std::uint32_t word() {
    std::uint32_t value = 0;
    for (int k = 0; k < 4; ++k) value = value * 256U + byte();
    return value;
  }
  // Below `limit`, which is at least 1.
  std::size_t below(std::size_t limit) { return limit <= 256 ? byte() % limit : word() % limit; }
  // Up to 255 bytes.
  std::string text() {
    const std::size_t wanted = byte();
    return take(std::min(wanted, left_.size()));
  }
  std::string rest() { return take(left_.size()); }

  template <typename T, std::size_t N>
  const T& pick(const T (&all)[N]) {
    return all[below(N)];
  }

 private:
  std::string take(std::size_t size) {
    std::string text(reinterpret_cast<const char*>(left_.data()), size);
    left_ = left_.subspan(size);
    return text;
  }

  std::span<const std::uint8_t> left_;
};

// Numbers, and texts that are nearly numbers, at the edges of what fields can hold.
inline constexpr std::string_view kNumbers[] = {"0",
                                                "1",
                                                "2",
                                                "-1",
                                                "0.5",
                                                "1e308",
                                                "-1e308",
                                                "inf",
                                                "-inf",
                                                "nan",
                                                "4294967295",
                                                "4294967296",
                                                "18446744073709551615",
                                                "18446744073709551616",
                                                "9007199254740993",
                                                "1e-320",
                                                "1e39",
                                                "70",
                                                "69",
                                                "71",
                                                "",
                                                "x",
                                                "0x10",
                                                " 1",
                                                "1 ",
                                                "00",
                                                "1e5",
                                                "3.5e38",
                                                "-0",
                                                "9223372036854775808"};

}  // namespace tamis::fuzz
