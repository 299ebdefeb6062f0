#include "base/files/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tamis::detail {
namespace {

using Bytes = std::vector<std::byte>;

Bytes file_of(std::vector<Tensor> tensors) {
  const SafetensorsWriter writer({}, std::move(tensors));
  Bytes file(static_cast<std::size_t>(writer.size()));
  writer.write([&](std::uint64_t offset, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(offset));
  });
  return file;
}

double seconds_of(const auto& work) {
  // Time of the processor: others may be using it too.
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Wherever in the file it stands: tensors begin and end anywhere in what is scanned at once.
TEST(SafetensorsReader, FindsTheTensorsWithAnInfiniteValue) {
  constexpr std::size_t kFloats = 50'000;  // 200 KB
  constexpr std::size_t kTensors = 20;
  std::vector<std::vector<float>> values(kTensors, std::vector<float>(kFloats, 1.0F));
  const std::byte odd{1};  // the floats behind it are not aligned
  for (std::size_t at = 0; at < kTensors; ++at) {
    const std::size_t place = at % 3 == 0 ? 0 : at % 3 == 1 ? kFloats - 1 : at * 997;
    values[at][place] = -std::numeric_limits<float>::infinity();
    std::vector<Tensor> tensors = {{"odd", "U8", {1}, {&odd, 1}}, {"empty", "F32", {0}, {}}};
    for (std::size_t t = 0; t < kTensors; ++t) {
      tensors.push_back(
          {"t" + std::to_string(t), "F32", {kFloats}, std::as_bytes(std::span(values[t]))});
      tensors.push_back({"e" + std::to_string(t), "F32", {0}, {}});
    }
    const Bytes file = file_of(std::move(tensors));
    SafetensorsReader reader("file", file);
    reader.verify_data();
    for (const Tensor& tensor : reader.tensors()) {
      EXPECT_EQ(tensor.is_finite, tensor.name != "t" + std::to_string(at)) << tensor.name;
    }
    values[at][place] = 1.0F;
  }
}

TEST(SafetensorsReader, ManyTensorsBesideMuchDataAreVerifiedInTheTimeOfTheirHeader) {
  constexpr std::size_t kTensors = 100'000;
  const Bytes data(std::size_t{128} << 20U);
  std::vector<Tensor> tensors = {{"data", "U8", {data.size()}, data}};
  for (std::size_t t = 0; t < kTensors; ++t) {
    tensors.push_back({"t" + std::to_string(t), "F32", {0}, {}});
  }
  const Bytes file = file_of(std::move(tensors));
  std::optional<SafetensorsReader> reader;
  const double parsing = seconds_of([&] { reader.emplace("file", file); });
  const double verifying = seconds_of([&] { reader->verify_data(); });
  EXPECT_EQ(reader->tensors().size(), kTensors + 1);
  // All tensors for each of 512 pieces would take several times as long.
  EXPECT_LT(verifying, parsing);
}

}  // namespace
}  // namespace tamis::detail
