#include "base/files/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/files/crc32c.h"
#include "base/former_name.h"
#include "base/threads.h"
#include "tamis/array.h"

namespace tamis::detail {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10U;
// Checksummed while it is in the cache, then written.
constexpr std::size_t kChunk = std::size_t{4} << 20U;
// Read from memory once, and then looked at twice while it is in the cache.
constexpr std::size_t kScanned = 4 * kBlock;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);
// The format's own limit.
constexpr std::uint64_t kMaxHeader = 100'000'000;

constexpr std::string_view kHeaderChecksum = "tamis_crc32c";
constexpr std::string_view kDataChecksum = "crc32c_of_crc32c";
constexpr std::string_view kBlockChecksums = "crc32c";
// Torch reads I32 in every version, U32 only from 2.3 on.
constexpr std::string_view kChecksumType = "I32";
// How a file of the product of this name begins, after the length; the eight digits follow.
std::string prefix_of(std::string_view name) {
  return concat(R"({"__metadata__":{")", name, R"(_crc32c":")");
}
constexpr std::size_t kDigits = 8;
constexpr std::string_view kNoDigits = "00000000";

static_assert(kChunk % kBlock == 0 && kBlock % kPage == 0);

std::string hex(std::uint32_t value) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string digits(kDigits, '0');
  for (std::size_t i = 0; i < kDigits; ++i) {
    digits[kDigits - 1 - i] = kHexDigits[(value >> (4 * i)) & 0xFU];
  }
  return digits;
}

std::size_t count_blocks(std::uint64_t bytes) {
  return static_cast<std::size_t>((bytes + kBlock - 1) / kBlock);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

bool is_page_aligned(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kPage == 0;
}

std::optional<std::uint64_t> item_size(std::string_view dtype) {
  struct Type {
    std::string_view name;
    std::uint64_t size;
  };
  constexpr std::array<Type, 5> kTypes = {
      {{"U8", 1}, {"F32", 4}, {"I32", 4}, {"U32", 4}, {"I64", 8}}};
  for (const Type& type : kTypes) {
    if (type.name == dtype) return type.size;
  }
  return std::nullopt;
}

// Bytes of a tensor of this type and shape; nothing if they cannot be counted.
std::optional<std::uint64_t> tensor_size(const TensorEntry& entry) {
  std::optional<std::uint64_t> size = item_size(entry.dtype);
  for (const std::uint64_t extent : entry.shape) {
    if (!size || (extent != 0 && *size > std::numeric_limits<std::uint64_t>::max() / extent)) {
      return std::nullopt;
    }
    *size *= extent;
  }
  return size;
}

// True if one of the values that lie in `part`, wholly or not, is infinite. The bytes need not be
// aligned, and the loop does not end early, so that the compiler can vectorize it.
bool has_infinity(const Tensor& tensor, std::span<const std::byte> part) {
  const std::byte* const begin = tensor.bytes.data();
  const std::byte* const end = begin + tensor.bytes.size();
  if (part.data() >= end || part.data() + part.size() <= begin) return false;
  constexpr std::size_t kSize = sizeof(float);
  const std::size_t first = static_cast<std::size_t>(std::max(part.data(), begin) - begin) / kSize;
  const auto last = static_cast<std::size_t>(std::min(part.data() + part.size(), end) - begin);
  std::uint32_t num_infinite = 0;
  for (std::size_t i = first; i < (last + kSize - 1) / kSize; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, begin + i * kSize, kSize);
    num_infinite += (bits & 0x7FFFFFFFU) == 0x7F800000U ? 1U : 0U;
  }
  return num_infinite > 0;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(Metadata metadata, std::vector<Tensor> tensors)
    : tensors_(std::move(tensors)) {
  SafetensorsHeader header;
  header.metadata = std::move(metadata);
  header.metadata.emplace(header.metadata.begin(), kHeaderChecksum, kNoDigits);
  header.metadata.emplace_back(kDataChecksum, kNoDigits);
  std::uint64_t offset = 0;
  const auto add_entry = [&](std::string_view name, std::string_view dtype,
                             const std::vector<std::uint64_t>& shape, std::uint64_t size) {
    header.tensors.push_back({std::string(name), std::string(dtype), shape, offset, offset + size});
    if (tensor_size(header.tensors.back()) != size) {
      throw std::invalid_argument(concat("state: tensor ", name, " of type ", dtype,
                                         " must fit its shape, got ", size, " bytes"));
    }
    offset += size;
  };
  for (const Tensor& tensor : tensors_) {
    add_entry(tensor.name, tensor.dtype, tensor.shape, tensor.bytes.size());
  }
  data_size_ = offset;
  const std::size_t num_blocks = count_blocks(data_size_);
  add_entry(kBlockChecksums, kChecksumType, {num_blocks}, num_blocks * sizeof(std::uint32_t));

  header_ = std::string(kLengthBytes, '\0') + format_header(header);
  header_.resize((header_.size() + kPage - 1) / kPage * kPage, ' ');
  const std::uint64_t length = header_.size() - kLengthBytes;
  std::memcpy(header_.data(), &length, sizeof length);
}

std::uint64_t SafetensorsWriter::size() const {
  return header_.size() + data_size_ + count_blocks(data_size_) * sizeof(std::uint32_t);
}

std::vector<std::uint32_t> SafetensorsWriter::write_tensors(const ByteSink& sink) const {
  std::vector<std::uint32_t> checksums(count_blocks(data_size_));
  std::uint64_t written = 0;
  const auto flush = [&](std::span<const std::byte> chunk) {
    const std::span<std::uint32_t> here =
        std::span(checksums).subspan(count_blocks(written), count_blocks(chunk.size()));
    crc32c_blocks(chunk, kBlock, here);
    sink(header_.size() + written, chunk);
    written += chunk.size();
  };
  Array<std::byte> staged(static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, data_size_)));
  std::size_t num_staged = 0;
  for (const Tensor& tensor : tensors_) {
    std::span<const std::byte> left = tensor.bytes;
    while (!left.empty()) {
      // Whole aligned chunks go out from where they are.
      if (num_staged == 0 && left.size() >= kChunk && is_page_aligned(left.data())) {
        flush(left.first(kChunk));
        left = left.subspan(kChunk);
        continue;
      }
      const std::size_t count = std::min(staged.size() - num_staged, left.size());
      std::memcpy(staged.data() + num_staged, left.data(), count);
      left = left.subspan(count);
      num_staged += count;
      if (num_staged == kChunk) flush({staged.data(), std::exchange(num_staged, 0)});
    }
  }
  flush({staged.data(), num_staged});
  return checksums;
}

void SafetensorsWriter::write(const ByteSink& sink) const {
  const std::vector<std::uint32_t> checksums = write_tensors(sink);
  const std::span<const std::byte> table = std::as_bytes(std::span(checksums));
  sink(header_.size() + data_size_, table);

  std::string header = header_;
  const std::string marker = concat("\"", kDataChecksum, "\":\"", kNoDigits, "\"}");
  header.replace(header.rfind(marker) + marker.size() - 2 - kDigits, kDigits, hex(crc32c(table)));
  const std::string checksum = hex(crc32c(bytes_of(header)));
  header.replace(kLengthBytes + prefix_of(kName).size(), kDigits, checksum);
  sink(0, bytes_of(header));
}

SafetensorsReader::SafetensorsReader(std::string source, std::span<const std::byte> file)
    : source_(std::move(source)) {
  if (file.empty()) fail("empty, not a safetensors file");
  if (file.size() < kLengthBytes) {
    fail(concat("not a safetensors file, or truncated: only ", file.size(), " bytes"));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::string_view begin = text.substr(kLengthBytes);
  const std::string former_prefix = prefix_of(kFormerName);
  const std::string prefix = begin.starts_with(former_prefix) ? former_prefix : prefix_of(kName);
  const bool is_ours = begin.starts_with(prefix);
  if (length > file.size() - kLengthBytes || length > kMaxHeader) {
    fail(concat(
        is_ours ? "truncated, or its header is damaged" : "not a safetensors file, or truncated",
        ": a header of ", length, " bytes announced in a file of ", file.size()));
  }
  const std::size_t header_end = kLengthBytes + static_cast<std::size_t>(length);
  const std::string_view json = text.substr(kLengthBytes, static_cast<std::size_t>(length));
  if (is_ours && length >= prefix.size() + kDigits) {
    std::string header(text.substr(0, header_end));
    const std::size_t digits = kLengthBytes + prefix.size();
    header.replace(digits, kDigits, kNoDigits);
    if (hex(crc32c(bytes_of(header))) != text.substr(digits, kDigits)) {
      fail("the header is damaged: it does not match its checksum");
    }
  }
  try {
    header_ = parse_header(json);
  } catch (const std::runtime_error& error) {
    fail(concat("not a safetensors file, or its header is damaged: ", error.what()));
  }
  if (!is_ours) {
    fail(find_metadata(kHeaderChecksum) != nullptr || find_metadata(kDataChecksum) != nullptr
             ? "the header is damaged, or was rewritten by another program"
             : "a safetensors file, but not written by tamis");
  }
  data_ = file.subspan(header_end);
}

void SafetensorsReader::verify_data() {
  read_layout();
  verify_blocks();
}

void SafetensorsReader::read_layout() {
  std::uint64_t offset = 0;
  for (const TensorEntry& entry : header_.tensors) {
    if (entry.begin != offset || tensor_size(entry) != entry.end - entry.begin) {
      fail(concat("tensor ", entry.name, " has an impossible type, shape or place"));
    }
    offset = entry.end;
  }
  if (offset > data_.size()) {
    fail(concat("truncated: ", data_.size(), " of ", offset, " bytes of data"));
  }
  if (offset < data_.size()) {
    fail(concat(data_.size() - offset, " bytes too many after the last tensor"));
  }
  for (const TensorEntry& entry : header_.tensors) {
    tensors_.push_back({entry.name, entry.dtype, entry.shape,
                        data_.subspan(static_cast<std::size_t>(entry.begin),
                                      static_cast<std::size_t>(entry.end - entry.begin))});
  }
  if (tensors_.empty() || tensors_.back().name != kBlockChecksums) {
    fail(concat("the last tensor must be ", kBlockChecksums));
  }
  checksums_ = tensors_.back().bytes;
  tensors_.pop_back();
  data_ = data_.first(data_.size() - checksums_.size());
  if (checksums_.size() != count_blocks(data_.size()) * sizeof(std::uint32_t)) {
    fail(concat("tensor ", kBlockChecksums, " has the wrong size"));
  }
}

const std::string* SafetensorsReader::find_metadata(std::string_view key) const {
  for (const auto& [name, value] : header_.metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Tensor* SafetensorsReader::find_tensor(std::string_view name) const {
  for (const Tensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

void SafetensorsReader::verify_blocks() {
  const std::string* const expected = find_metadata(kDataChecksum);
  if (expected == nullptr || hex(crc32c(checksums_)) != *expected) {
    fail("the data are damaged: the checksums themselves do not match theirs");
  }
  std::vector<std::uint32_t> checksums(count_blocks(data_.size()));
  const Parts parts(data_.size(), kScanned, kBytesPerThread);
  std::vector<std::vector<std::uint8_t>> has_infinities(parts.size());  // of each tensor
  parts.run([&](std::size_t p) {
    std::vector<std::uint8_t> own(tensors_.size(), 0);
    for (std::size_t begin = parts.begin(p); begin < parts.end(p); begin += kScanned) {
      const auto part = data_.subspan(begin, std::min(kScanned, parts.end(p) - begin));
      crc32c_blocks(part, kBlock,
                    std::span(checksums).subspan(begin / kBlock, count_blocks(part.size())));
      // One tensor ends where the next begins: those in this part stand together.
      const auto first =
          std::partition_point(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) {
            return tensor.bytes.data() + tensor.bytes.size() <= part.data();
          });
      for (auto tensor = first; tensor != tensors_.end(); ++tensor) {
        if (tensor->bytes.data() >= part.data() + part.size()) break;
        if (tensor->dtype == "F32" && has_infinity(*tensor, part)) {
          own[static_cast<std::size_t>(tensor - tensors_.begin())] = 1;
        }
      }
    }
    has_infinities[p] = std::move(own);
  });
  for (const std::vector<std::uint8_t>& own : has_infinities) {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (own[t] != 0) tensors_[t].is_finite = false;
    }
  }
  const std::span<const std::byte> found = std::as_bytes(std::span(checksums));
  const auto first = std::mismatch(found.begin(), found.end(), checksums_.begin()).first;
  if (first == found.end()) return;
  const std::size_t block = static_cast<std::size_t>(first - found.begin()) / sizeof(std::uint32_t);
  const std::size_t begin = block * kBlock;
  const std::size_t end = std::min(begin + kBlock, data_.size());
  std::string names;
  for (const Tensor& tensor : tensors_) {
    const auto at = static_cast<std::size_t>(tensor.bytes.data() - data_.data());
    if (at >= end || at + tensor.bytes.size() <= begin) continue;
    names += concat(names.empty() ? "" : " or ", tensor.name);
  }
  fail(concat("the data are damaged in ", names, ": block ", block, ", bytes [", begin, ", ", end,
              ") after the header, does not match its checksum"));
}

void SafetensorsReader::fail(std::string_view what) const {
  throw std::runtime_error(concat(source_, ": ", what));
}

}  // namespace tamis::detail
