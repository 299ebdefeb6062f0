// State files: safetensors with checksums, written and read without loading them twice.
//
// Layout: 8 bytes of header length, the JSON header, the tensors back to back. Beyond the format:
// - the first metadata entry, `tamis_crc32c`, is the checksum of the length and the header, taken
// with
//   its own eight digits as zeros; the header ends in spaces so that the tensors begin on a page;
// - the last tensor, `crc32c`, holds one checksum per 64 KiB of all tensors before it, and the last
//   metadata entry, `crc32c_of_crc32c`, the checksum of that tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/safetensors_header.h"

namespace tamis::detail {

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;  // not owned
  // Of F32: no value is infinite. The reader knows it once the data are verified.
  bool is_finite = true;
};

// Takes bytes that belong at `offset`.
using ByteSink = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;

class SafetensorsWriter {
 public:
  // The bytes of the tensors are read by write(), not copied here. Throws std::invalid_argument if
  // a type is not one of U8, F32, I32, U32 and I64, or the bytes do not fit the shape.
  SafetensorsWriter(Metadata metadata, std::vector<Tensor> tensors);

  // Size of the whole file.
  std::uint64_t size() const;

  // Gives every byte of the file to `sink` once, large aligned pieces first and the header last.
  void write(const ByteSink& sink) const;

 private:
  // Gives the tensors to `sink`; returns one checksum per block of them.
  std::vector<std::uint32_t> write_tensors(const ByteSink& sink) const;

  std::vector<Tensor> tensors_;
  std::string header_;  // with the length before it
  std::uint64_t data_size_ = 0;
};

class SafetensorsReader {
 public:
  // Parses and verifies the header of a file that SafetensorsWriter wrote. `source` begins all
  // messages; `file` must outlive this. Throws std::runtime_error if the bytes are not such a file.
  SafetensorsReader(std::string source, std::span<const std::byte> file);

  const Metadata& metadata() const { return header_.metadata; }
  // Null if there is none.
  const std::string* find_metadata(std::string_view key) const;

  // Throws std::runtime_error if data are missing, too many, or do not match their checksums; says
  // in which tensor. A separate step, so that a caller can refuse a file by its header first.
  void verify_data();

  // In the order of the file, without the checksums. Empty before verify_data().
  std::span<const Tensor> tensors() const { return tensors_; }
  // Null if there is none.
  const Tensor* find_tensor(std::string_view name) const;

  // Throws std::runtime_error "<source>: <what>".
  [[noreturn]] void fail(std::string_view what) const;

 private:
  // Throws unless the tensors fill `data_` exactly; then takes the checksums off its end.
  void read_layout();
  void verify_blocks();

  std::string source_;
  SafetensorsHeader header_;
  std::vector<Tensor> tensors_;
  std::span<const std::byte> data_;
  std::span<const std::byte> checksums_;
};

}  // namespace tamis::detail
