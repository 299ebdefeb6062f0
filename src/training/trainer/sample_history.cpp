#include "training/trainer/sample_history.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "base/files/safetensors.h"

namespace tamis::training {

namespace {

using detail::concat;
using detail::SafetensorsReader;

constexpr std::string_view kHistoryFormat = "tamis-history";
constexpr std::string_view kHistoryFormatVersion = "1";
constexpr std::uint64_t kMostSnapshots = 32;

template <typename Value>
detail::Tensor tensor_of(std::string name, std::string dtype, std::vector<std::uint64_t> shape,
                         const std::vector<Value>& values) {
  return {std::move(name), std::move(dtype), std::move(shape), std::as_bytes(std::span(values))};
}

// A copy, for the bytes of a file are not aligned.
template <typename Value>
std::vector<Value> read_tensor(const SafetensorsReader& file, std::string_view name,
                               std::string_view dtype, const std::vector<std::uint64_t>& shape) {
  const detail::Tensor* const tensor = file.find_tensor(name);
  if (tensor == nullptr || tensor->dtype != dtype || tensor->shape != shape) {
    file.fail(concat("tensor ", name, " is missing, or of another type or shape than the run's"));
  }
  std::vector<Value> values(tensor->bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

void require_field(const SafetensorsReader& file, std::string_view key, std::string_view value) {
  const std::string* const found = file.find_metadata(key);
  if (found != nullptr && *found == value) return;
  file.fail(concat("field ", key, " must be ", value, ", got ",
                   found == nullptr ? "none" : std::string_view(*found)));
}

bool are_losses(const std::vector<float>& values) {
  return std::none_of(values.begin(), values.end(), [](float loss) { return std::isinf(loss); });
}

}  // namespace

bool is_chosen_epoch(std::uint64_t epoch, std::uint64_t num_epochs, std::uint64_t count) {
  count = std::min(count, num_epochs);
  return (epoch + 1) * count / num_epochs > epoch * count / num_epochs;
}

SampleHistory::SampleHistory(std::size_t num_samples, std::uint64_t num_epochs)
    : num_epochs_(num_epochs),
      last_losses_(num_samples, std::numeric_limits<float>::quiet_NaN()),
      forgetting_(num_samples) {}

void SampleHistory::visit(std::span<const SampleIndex> samples, std::span<const float> losses,
                          std::span<const bool> is_right) {
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const auto sample = static_cast<std::size_t>(samples[k]);
    last_losses_[sample] = losses[k];
    forgetting_.visit(sample, is_right[k]);
  }
}

void SampleHistory::end_epoch(std::uint64_t epoch) {
  if (!is_chosen_epoch(epoch, num_epochs_, kMostSnapshots)) return;
  epochs_.push_back(epoch);
  snapshots_.insert(snapshots_.end(), last_losses_.begin(), last_losses_.end());
}

std::span<const float> SampleHistory::losses(std::size_t snapshot) const {
  return std::span(snapshots_).subspan(snapshot * num_samples(), num_samples());
}

void SampleHistory::save(const std::filesystem::path& path, std::uint64_t step) const {
  const std::uint64_t n = num_samples();
  const detail::SafetensorsWriter writer(
      {{"format", std::string(kHistoryFormat)},
       {"format_version", std::string(kHistoryFormatVersion)},
       {"step", std::to_string(step)}},
      {tensor_of("snapshots", "F32", {epochs_.size(), n}, snapshots_),
       tensor_of("last_losses", "F32", {n}, last_losses_),
       tensor_of("forgotten", "U32", {n}, forgetting_.counts()),
       tensor_of("seen", "U8", {n}, forgetting_.seen())});
  detail::AtomicFile file(path, writer.size());
  writer.write(
      [&](std::uint64_t offset, std::span<const std::byte> bytes) { file.write(offset, bytes); });
  file.commit();
}

void SampleHistory::load(const std::filesystem::path& path, std::uint64_t step,
                         std::uint64_t epochs_done) {
  const detail::MappedFile mapped(path);
  SafetensorsReader file(path.native(), mapped.bytes());
  require_field(file, "format", kHistoryFormat);
  require_field(file, "format_version", kHistoryFormatVersion);
  require_field(file, "step", std::to_string(step));
  file.verify_data();
  // Told by another file: were it taken on trust, the list of epochs would take all memory.
  if (epochs_done > num_epochs_) {
    file.fail(concat("belongs to a run of ", num_epochs_, " epochs, but the checkpoint has done ",
                     epochs_done));
  }
  std::vector<std::uint64_t> epochs;
  for (std::uint64_t epoch = 0; epoch < epochs_done; ++epoch) {
    if (is_chosen_epoch(epoch, num_epochs_, kMostSnapshots)) epochs.push_back(epoch);
  }
  const std::uint64_t n = num_samples();
  auto snapshots = read_tensor<float>(file, "snapshots", "F32", {epochs.size(), n});
  auto last_losses = read_tensor<float>(file, "last_losses", "F32", {n});
  auto forgotten = read_tensor<std::uint32_t>(file, "forgotten", "U32", {n});
  auto seen = read_tensor<std::uint8_t>(file, "seen", "U8", {n});
  if (!are_losses(snapshots) || !are_losses(last_losses)) {
    file.fail("a loss must be finite or NaN, got an infinite one");
  }
  epochs_ = std::move(epochs);
  snapshots_ = std::move(snapshots);
  last_losses_ = std::move(last_losses);
  forgetting_ = ForgettingEvents(std::move(seen), std::move(forgotten));
}

}  // namespace tamis::training
