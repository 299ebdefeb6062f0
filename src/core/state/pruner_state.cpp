// State files of a Pruner: what the tensors and the metadata of the container mean.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "base/files/safetensors.h"
#include "core/state/state_fields.h"
#include "tamis/pruner.h"

namespace tamis {

namespace {

using detail::concat;
using detail::Metadata;
using detail::SafetensorsReader;
using detail::SafetensorsWriter;
using detail::Tensor;

constexpr std::string_view kFormat = "tamis-pruner";
constexpr std::uint64_t kFormatVersion = 1;
constexpr std::string_view kNumberPrefix = "number.";
constexpr std::string_view kKept = "plan.kept";
constexpr std::string_view kRescaled = "plan.rescaled";
constexpr std::string_view kLabels = "labels";

// Packed bits, lowest first, in whole 64-bit words.
Tensor bitmap_tensor(std::string_view name, const Bitmap& bitmap) {
  const std::span<const std::byte> bytes = std::as_bytes(bitmap.words());
  return {std::string(name), "U8", {bytes.size()}, bytes};
}

Bitmap read_bitmap(const SafetensorsReader& file, const Tensor& tensor, std::size_t size) {
  Bitmap bitmap(size);
  const std::span<std::byte> words = std::as_writable_bytes(bitmap.words());
  if (tensor.dtype != "U8" || tensor.bytes.size() != words.size()) {
    file.fail(concat("tensor ", tensor.name, " must be U8 of ", words.size(), " bytes, got ",
                     tensor.dtype, " of ", tensor.bytes.size()));
  }
  std::memcpy(words.data(), tensor.bytes.data(), words.size());
  const std::uint64_t last = bitmap.words().back();
  if (size % 64 != 0 && (last >> (size % 64)) != 0) {
    file.fail(concat("tensor ", tensor.name, " has bits past the last sample"));
  }
  return bitmap;
}

// One row per sample.
Tensor array_tensor(const ScorerArray& array, std::size_t num_samples) {
  const std::size_t columns = array.bytes.size() / (sizeof(float) * num_samples);
  std::vector<std::uint64_t> shape = {num_samples};
  if (columns != 1) shape.push_back(columns);
  return {std::string(array.name), std::string(array.dtype), std::move(shape), array.bytes};
}

Tensor labels_tensor(std::span<const std::int32_t> labels) {
  return {std::string(kLabels), "I32", {labels.size()}, std::as_bytes(labels)};
}

// The classes of the samples, numbered from 0; empty if the file has none.
std::vector<std::int32_t> read_labels(const SafetensorsReader& file, std::size_t num_samples) {
  const Tensor* const tensor = file.find_tensor(kLabels);
  if (tensor == nullptr) return {};
  std::vector<std::int32_t> labels(num_samples);
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(labels));
  if (tensor->dtype != "I32" || tensor->bytes.size() != bytes.size()) {
    file.fail(concat("tensor labels must be I32 of ", bytes.size(), " bytes, got ", tensor->dtype,
                     " of ", tensor->bytes.size()));
  }
  std::memcpy(bytes.data(), tensor->bytes.data(), bytes.size());
  return labels;
}

void check_same_labels(const SafetensorsReader& file, const PrunerOptions& options) {
  if (options.labels.empty()) return;
  const std::vector<std::int32_t> theirs = read_labels(file, options.num_samples);
  if (theirs.empty()) file.fail("tensor labels is missing");
  const auto [ours, other] =
      std::mismatch(options.labels.begin(), options.labels.end(), theirs.begin());
  if (ours != options.labels.end()) {
    file.fail(concat("belongs to a run with other labels: sample ", ours - options.labels.begin(),
                     " is of class ", *other, " in the file, but ", *ours, " in this run"));
  }
}

void check_format(const SafetensorsReader& file) {
  const std::string& format = detail::read_text(file, "format");
  if (format != kFormat) {
    file.fail(concat("not the state of a pruner: its format is ", format, ", not ", kFormat));
  }
  const std::uint64_t version = detail::read_integer(file, "format_version");
  if (version > kFormatVersion) {
    file.fail(concat("written by a newer tamis (format ", version, "); this one reads up to ",
                     kFormatVersion));
  }
}

}  // namespace

class PrunerState {
 public:
  static SafetensorsWriter pack(const Pruner& pruner);

  // Replaces the state by that of the file, whose options are the pruner's and whose data are
  // verified. Throws std::runtime_error, before anything is changed, if they do not fit.
  static void unpack(const SafetensorsReader& file, Pruner& pruner);

  static void load(std::string source, std::span<const std::byte> bytes, Pruner& pruner) {
    SafetensorsReader file(std::move(source), bytes);
    check_format(file);
    detail::check_same_options(file, pruner.options_);
    file.verify_data();
    check_same_labels(file, pruner.options_);
    unpack(file, pruner);
  }

  static Pruner create(std::string source, std::span<const std::byte> bytes) {
    SafetensorsReader file(std::move(source), bytes);
    check_format(file);
    file.verify_data();
    Pruner pruner = construct(file);
    unpack(file, pruner);
    return pruner;
  }

 private:
  static Pruner construct(const SafetensorsReader& file);
  static std::optional<EpochPlan> read_plan(const SafetensorsReader& file, const Pruner& pruner);
  static void check_scorer(const SafetensorsReader& file, const std::vector<ScorerArray>& arrays,
                           const OptionMap& numbers, const Scorer& scorer);
};

SafetensorsWriter PrunerState::pack(const Pruner& pruner) {
  Metadata metadata = {{"format", std::string(kFormat)},
                       {"format_version", std::to_string(kFormatVersion)}};
  detail::write_options(pruner.options_, metadata);
  metadata.emplace_back("num_observations", std::to_string(pruner.num_observations_));
  metadata.emplace_back("num_skipped_observations",
                        std::to_string(pruner.num_skipped_observations_));
  metadata.emplace_back("num_epochs_started", std::to_string(pruner.num_epochs_started_));
  metadata.emplace_back("num_samples_planned", std::to_string(pruner.num_samples_planned_));
  detail::write_numbers(kNumberPrefix, pruner.scorer_->numbers(), metadata);

  std::vector<Tensor> tensors;
  for (const ScorerArray& array : pruner.scorer_->arrays()) {
    tensors.push_back(array_tensor(array, pruner.num_samples()));
  }
  if (!pruner.options_.labels.empty()) tensors.push_back(labels_tensor(pruner.options_.labels));
  if (pruner.plan_) {
    const EpochPlan& plan = *pruner.plan_;
    const Selection& selection = plan.selection();
    metadata.emplace_back("epoch", std::to_string(plan.epoch()));
    metadata.emplace_back("position", std::to_string(pruner.position_));
    if (pruner.num_position_ranks_ > 0) {
      metadata.emplace_back("num_position_ranks", std::to_string(pruner.num_position_ranks_));
    }
    metadata.emplace_back("pruning", plan.pruning() ? "1" : "0");
    metadata.emplace_back("rescale", detail::to_text(static_cast<double>(selection.rescale)));
    detail::write_report(selection.report, metadata);
    if (plan.num_pruned() > 0) tensors.push_back(bitmap_tensor(kKept, selection.kept));
    if (selection.rescaled.count() > 0) {
      tensors.push_back(bitmap_tensor(kRescaled, selection.rescaled));
    }
  }
  return {std::move(metadata), std::move(tensors)};
}

Pruner PrunerState::construct(const SafetensorsReader& file) {
  PrunerOptions options = detail::read_options(file);
  // Before memory is taken for so many samples.
  for (const Tensor& tensor : file.tensors()) {
    if (tensor.name == kKept || tensor.name == kRescaled) continue;
    if (tensor.shape.empty() || tensor.shape[0] != options.num_samples) {
      file.fail(concat("tensor ", tensor.name, " must have ", options.num_samples, " rows"));
    }
  }
  options.labels = read_labels(file, options.num_samples);
  try {
    return Pruner(options);
  } catch (const std::invalid_argument& error) {
    file.fail(concat("its options cannot be used here: ", error.what()));
  }
}

std::optional<EpochPlan> PrunerState::read_plan(const SafetensorsReader& file,
                                                const Pruner& pruner) {
  if (file.find_metadata("epoch") == nullptr) return std::nullopt;
  const std::uint64_t epoch = detail::read_integer(file, "epoch");
  if (epoch >= pruner.schedule_.num_epochs) {
    file.fail(concat("field epoch must be below ", pruner.schedule_.num_epochs, ", got ", epoch));
  }
  const std::size_t num_samples = pruner.num_samples();
  Selection selection = Selection::all(num_samples);
  if (const Tensor* kept = file.find_tensor(kKept)) {
    selection.kept = read_bitmap(file, *kept, num_samples);
  }
  if (const Tensor* rescaled = file.find_tensor(kRescaled)) {
    selection.rescaled = read_bitmap(file, *rescaled, num_samples);
  }
  selection.rescale = static_cast<float>(detail::read_real(file, "rescale"));
  selection.report = detail::read_report(file);
  const bool pruning = detail::read_integer(file, "pruning") != 0;
  return EpochPlan(std::move(selection), pruner.options_.seed, epoch, pruning,
                   pruner.options_.homogeneous_batch_size);
}

void PrunerState::check_scorer(const SafetensorsReader& file,
                               const std::vector<ScorerArray>& arrays, const OptionMap& numbers,
                               const Scorer& scorer) {
  for (const ScorerArray& array : arrays) {
    const Tensor* const tensor = file.find_tensor(array.name);
    if (tensor == nullptr) file.fail(concat("tensor ", array.name, " is missing"));
    if (tensor->dtype != array.dtype || tensor->bytes.size() != array.bytes.size()) {
      file.fail(concat("tensor ", array.name, " must be ", array.dtype, " of ", array.bytes.size(),
                       " bytes, got ", tensor->dtype, " of ", tensor->bytes.size()));
    }
  }
  for (const auto& [name, value] : scorer.numbers()) {
    if (!numbers.contains(name)) file.fail(concat("field ", kNumberPrefix, name, " is missing"));
  }
}

void PrunerState::unpack(const SafetensorsReader& file, Pruner& pruner) {
  const std::uint64_t num_observations = detail::read_integer(file, "num_observations");
  const std::uint64_t num_skipped = detail::read_integer(file, "num_skipped_observations");
  const std::uint64_t num_epochs_started = detail::read_integer(file, "num_epochs_started");
  const std::uint64_t num_samples_planned = detail::read_integer(file, "num_samples_planned");
  const std::vector<ScorerArray> arrays = pruner.scorer_->arrays();
  const OptionMap numbers = detail::read_numbers(file, kNumberPrefix);
  check_scorer(file, arrays, numbers, *pruner.scorer_);
  std::optional<EpochPlan> plan = read_plan(file, pruner);
  const std::uint64_t position = plan ? detail::read_integer(file, "position") : 0;
  if (plan && position > plan->size()) {
    file.fail(concat("field position must be in [0, ", plan->size(), "], got ", position));
  }

  const std::uint64_t num_position_ranks = file.find_metadata("num_position_ranks") != nullptr
                                               ? detail::read_integer(file, "num_position_ranks")
                                               : 0;
  if (num_position_ranks > 0 && num_position_ranks != pruner.num_position_ranks_) {
    file.fail(concat("was saved in the middle of an epoch by ", num_position_ranks,
                     " ranks in the sharded layout; only as many can go on from there"));
  }

  // Nothing below throws: the scorer finds all its numbers.
  pruner.scorer_->set_numbers(numbers);
  for (const ScorerArray& array : arrays) {
    const std::span<const std::byte> saved = file.find_tensor(array.name)->bytes;
    std::memcpy(array.bytes.data(), saved.data(), saved.size());
  }
  pruner.plan_ = std::move(plan);
  pruner.position_ = static_cast<std::size_t>(position);
  pruner.num_position_ranks_ = num_position_ranks;
  pruner.num_observations_ = num_observations;
  pruner.num_skipped_observations_ = num_skipped;
  pruner.num_epochs_started_ = num_epochs_started;
  pruner.num_samples_planned_ = num_samples_planned;
}

// A recording is on disk before a state that goes on with it.
void Pruner::save(const std::filesystem::path& path) const {
  if (recorder_) recorder_->flush();
  const SafetensorsWriter writer = PrunerState::pack(*this);
  detail::AtomicFile file(path, writer.size());
  writer.write(
      [&](std::uint64_t offset, std::span<const std::byte> bytes) { file.write(offset, bytes); });
  file.commit();
}

void Pruner::load(const std::filesystem::path& path) {
  const detail::MappedFile file(path);
  PrunerState::load(path.native(), file.bytes(), *this);
  if (recorder_) recorder_->rewind(num_steps());
}

Pruner Pruner::from_file(const std::filesystem::path& path) {
  const detail::MappedFile file(path);
  return PrunerState::create(path.native(), file.bytes());
}

std::vector<std::byte> Pruner::serialize() const {
  if (recorder_) recorder_->flush();
  const SafetensorsWriter writer = PrunerState::pack(*this);
  std::vector<std::byte> out(static_cast<std::size_t>(writer.size()));
  writer.write([&](std::uint64_t offset, std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(out.data() + offset, bytes.data(), bytes.size());
  });
  return out;
}

void Pruner::deserialize(std::span<const std::byte> bytes) {
  PrunerState::load("state", bytes, *this);
  if (recorder_) recorder_->rewind(num_steps());
}

}  // namespace tamis
