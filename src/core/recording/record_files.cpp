#include "core/recording/record_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "base/files/safetensors.h"
#include "base/former_name.h"
#include "core/state/state_fields.h"

namespace tamis::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "tamis-record";
constexpr std::uint64_t kFormatVersion = 1;
constexpr std::string_view kSamples = "samples.safetensors";
constexpr std::string_view kShardPrefix = "steps-";
constexpr std::string_view kTruthPrefix = "losses-epoch";
constexpr std::string_view kSuffix = ".safetensors";

template <typename T>
constexpr std::string_view kType = std::is_same_v<T, float> ? "F32" : "U32";

std::size_t sum_of(const std::vector<std::uint32_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

template <typename T>
Tensor tensor_of(std::string_view name, const std::vector<T>& values) {
  return {
      std::string(name), std::string(kType<T>), {values.size()}, std::as_bytes(std::span(values))};
}

void write(const fs::path& path, Metadata metadata, std::vector<Tensor> tensors) {
  metadata.emplace(metadata.begin(), "format_version", std::to_string(kFormatVersion));
  metadata.emplace(metadata.begin(), "format", kFormat);
  const SafetensorsWriter writer(std::move(metadata), std::move(tensors));
  AtomicFile file(path, writer.size());
  writer.write(
      [&](std::uint64_t offset, std::span<const std::byte> bytes) { file.write(offset, bytes); });
  file.commit();
}

// A file of a recording, verified.
class RecordFile {
 public:
  explicit RecordFile(const fs::path& path)
      : mapped_(path), reader_(path.native(), mapped_.bytes()) {
    if (const std::string& format = read_text(reader_, "format"); !is_name(format, kFormat)) {
      reader_.fail(concat("not a part of a recording: its format is ", format));
    }
    if (const std::uint64_t version = number("format_version"); version > kFormatVersion) {
      reader_.fail(concat("written by a newer tamis (format ", version, "); this one reads up to ",
                          kFormatVersion));
    }
    reader_.verify_data();
  }

  bool has(std::string_view name) const { return reader_.find_tensor(name) != nullptr; }
  bool has_field(std::string_view key) const { return reader_.find_metadata(key) != nullptr; }
  std::uint64_t number(std::string_view key) const { return read_integer(reader_, key); }

  template <typename T>
  std::vector<T> values(std::string_view name) const {
    const Tensor* const tensor = reader_.find_tensor(name);
    if (tensor == nullptr || tensor->dtype != kType<T>) {
      reader_.fail(concat("tensor ", name, " of type ", kType<T>, " is missing"));
    }
    std::vector<T> values(tensor->bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return values;
  }

  void require(bool holds, std::string_view what) const {
    if (!holds) reader_.fail(what);
  }

 private:
  MappedFile mapped_;
  SafetensorsReader reader_;
};

// "steps-00012.safetensors"; more digits where they are needed.
std::string numbered(std::string_view prefix, std::uint64_t number) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%05llu", static_cast<unsigned long long>(number));
  return concat(prefix, digits.data(), kSuffix);
}

// The number in such a name; nothing if it is not one.
std::optional<std::uint64_t> number_in(std::string_view name, std::string_view prefix) {
  std::uint64_t number = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  return name == numbered(prefix, number) ? std::optional(number) : std::nullopt;
}

// The numbers in the names of such files, ascending.
std::vector<std::uint64_t> numbers_of(const fs::path& folder, std::string_view prefix) {
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto number = number_in(entry.path().filename().native(), prefix);
    if (number) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool is_record_file(std::string_view name) {
  return name == kSamples || number_in(name, kShardPrefix) || number_in(name, kTruthPrefix);
}

bool is_unfinished(std::string_view name) { return is_record_file(target_of_temporary(name)); }

void remove_files(const fs::path& folder, bool (*is_meant)(std::string_view name)) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_meant(entry.path().filename().native())) paths.push_back(entry.path());
  }
  for (const fs::path& path : paths) fs::remove(path);
}

}  // namespace

RecordedSamples::RecordedSamples(std::size_t num_samples, std::span<const std::uint32_t> samples)
    : num_samples_(num_samples), samples_(samples) {
  constexpr std::size_t kAlwaysMarked = std::size_t{1} << 23U;
  constexpr std::size_t kBitsPerSample = 64;
  if (num_samples > kAlwaysMarked + kBitsPerSample * samples.size()) return;
  marks_.resize(num_samples);
  for (const std::uint32_t sample : samples) marks_[sample] = true;
}

std::size_t RecordShard::num_bytes() const {
  return sizeof(std::uint32_t) *
         (epochs.size() + batch_sizes.size() + mean_losses.size() + indices.size() +
          own_losses.size() + num_norms.size() + norms.size());
}

void RecordShard::truncate(std::uint64_t count, const RecordedSamples& recorded) {
  epochs.resize(count);
  batch_sizes.resize(count);
  mean_losses.resize(count);
  indices.resize(sum_of(batch_sizes));
  own_losses.resize(static_cast<std::size_t>(
      std::count_if(indices.begin(), indices.end(),
                    [&](std::uint32_t index) { return recorded.contains(index); })));
  num_norms.resize(std::min<std::size_t>(num_norms.size(), count));
  norms.resize(sum_of(num_norms));
}

fs::path samples_path(const fs::path& folder) { return folder / kSamples; }

fs::path shard_path(const fs::path& folder, std::size_t number) {
  return folder / numbered(kShardPrefix, number);
}

fs::path true_losses_path(const fs::path& folder, std::uint64_t epoch) {
  return folder / numbered(kTruthPrefix, epoch);
}

void write_samples(const fs::path& folder, const RecordSamples& samples) {
  write(samples_path(folder),
        {{"num_samples", std::to_string(samples.num_samples)},
         {"norm_order", std::to_string(samples.norm_order)},
         {"shard_bytes", std::to_string(samples.shard_bytes)}},
        {tensor_of("samples", samples.samples)});
}

RecordSamples read_samples(const fs::path& folder) {
  const RecordFile file(samples_path(folder));
  RecordSamples samples{.num_samples = file.number("num_samples"),
                        .shard_bytes = file.number("shard_bytes"),
                        .samples = file.values<std::uint32_t>("samples")};
  file.require(samples.num_samples <= std::numeric_limits<std::uint32_t>::max(),
               "field num_samples must be below 2^32");
  // Before there were others, all were of order 2.
  const std::uint64_t norm_order = file.has_field("norm_order") ? file.number("norm_order") : 2;
  file.require(norm_order == 1 || norm_order == 2, "field norm_order must be 1 or 2");
  samples.norm_order = static_cast<int>(norm_order);
  const auto& all = samples.samples;
  file.require(!all.empty() && all.back() < samples.num_samples &&
                   std::adjacent_find(all.begin(), all.end(), std::greater_equal<>()) == all.end(),
               "its samples must be ascending and below num_samples");
  return samples;
}

void write_shard(const fs::path& folder, std::size_t number, const RecordShard& shard) {
  std::vector<Tensor> tensors = {
      tensor_of("epochs", shard.epochs), tensor_of("batch_sizes", shard.batch_sizes),
      tensor_of("mean_losses", shard.mean_losses), tensor_of("indices", shard.indices),
      tensor_of("own_losses", shard.own_losses)};
  if (!shard.norms.empty()) {
    tensors.push_back(tensor_of("num_norms", shard.num_norms));
    tensors.push_back(tensor_of("norms", shard.norms));
  }
  write(shard_path(folder, number), {{"first_step", std::to_string(shard.first_step)}},
        std::move(tensors));
}

RecordShard read_shard(const fs::path& folder, std::size_t number,
                       const RecordedSamples& recorded) {
  const RecordFile file(shard_path(folder, number));
  RecordShard shard{.first_step = file.number("first_step"),
                    .epochs = file.values<std::uint32_t>("epochs"),
                    .batch_sizes = file.values<std::uint32_t>("batch_sizes"),
                    .mean_losses = file.values<float>("mean_losses"),
                    .indices = file.values<std::uint32_t>("indices"),
                    .own_losses = file.values<float>("own_losses")};
  if (file.has("norms")) {
    shard.num_norms = file.values<std::uint32_t>("num_norms");
    shard.norms = file.values<float>("norms");
    bool fits = shard.num_norms.size() == shard.num_steps();
    for (std::size_t k = 0; fits && k < shard.num_steps(); ++k) {
      fits = shard.num_norms[k] == 0 || shard.num_norms[k] >= shard.batch_sizes[k];
    }
    file.require(fits && shard.norms.size() == sum_of(shard.num_norms),
                 "its norms do not fit its batches");
  }
  std::size_t num_own = 0;
  for (const std::uint32_t index : shard.indices) {
    file.require(index < recorded.num_samples(), "an index is beyond the data set");
    if (recorded.contains(index)) ++num_own;
  }
  file.require(
      shard.epochs.size() == shard.num_steps() && shard.mean_losses.size() == shard.num_steps() &&
          shard.indices.size() == sum_of(shard.batch_sizes) && shard.own_losses.size() == num_own,
      "its tensors do not fit each other");
  return shard;
}

void write_true_losses(const fs::path& folder, const TrueLosses& truth) {
  write(true_losses_path(folder, truth.epoch),
        {{"epoch", std::to_string(truth.epoch)}, {"num_steps", std::to_string(truth.num_steps)}},
        {tensor_of("losses", truth.losses)});
}

TrueLosses read_true_losses(const fs::path& path, std::size_t num_recorded) {
  const RecordFile file(path);
  TrueLosses truth{.epoch = file.number("epoch"),
                   .num_steps = file.number("num_steps"),
                   .losses = file.values<float>("losses")};
  file.require(truth.losses.size() == num_recorded, "it must have one loss per recorded sample");
  return truth;
}

std::size_t count_shards(const fs::path& folder) {
  const std::vector<std::uint64_t> numbers = numbers_of(folder, kShardPrefix);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] == k) continue;
    throw std::runtime_error(
        concat(shard_path(folder, k).native(), ": is missing, but later steps are there"));
  }
  return numbers.size();
}

std::vector<std::uint64_t> true_loss_epochs(const fs::path& folder) {
  return numbers_of(folder, kTruthPrefix);
}

void remove_unfinished(const fs::path& folder) { remove_files(folder, is_unfinished); }

void remove_record_files(const fs::path& folder) {
  remove_files(folder, is_unfinished);
  remove_files(folder, is_record_file);
}

}  // namespace tamis::detail
