#include "core/state/state_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/former_name.h"
#include "base/threads.h"
#include "core/state/state_fields.h"
#include "tamis/registry.h"

namespace tamis::detail {

namespace {

constexpr std::string_view kFormat = "tamis-pruner";
constexpr std::uint64_t kFormatVersion = 1;
constexpr std::string_view kNumberPrefix = "number.";
constexpr std::string_view kKept = "plan.kept";
constexpr std::string_view kRescaled = "plan.rescaled";
constexpr std::string_view kLabels = "labels";
constexpr std::string_view kAttachment = "attachment.";

Tensor bytes_tensor(std::string name, std::span<const std::byte> bytes) {
  return {std::move(name), "U8", {bytes.size()}, bytes};
}

// Packed bits, lowest first, in whole 64-bit words.
Tensor bitmap_tensor(std::string_view name, const Bitmap& bitmap) {
  return bytes_tensor(std::string(name), std::as_bytes(bitmap.words()));
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

// An empty bitmap has no bit set.
bool is_subset(const Bitmap& part, const Bitmap& whole) {
  const std::span<const std::uint64_t> bits = part.words();
  for (std::size_t w = 0; w < bits.size(); ++w) {
    if ((bits[w] & ~whole.words()[w]) != 0) return false;
  }
  return true;
}

// Position of the first infinite number. Requires: there is one. The bytes need not be aligned.
std::size_t find_infinite(std::span<const std::byte> floats) {
  for (std::size_t i = 0;; ++i) {
    float value = 0.0F;
    std::memcpy(&value, floats.data() + i * sizeof value, sizeof value);
    if (std::isinf(value)) return i;
  }
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

void pack_plan(const RunState& state, Metadata& metadata, std::vector<Tensor>& tensors) {
  const EpochPlan& plan = *state.plan;
  const Selection& selection = plan.selection();
  metadata.emplace_back("epoch", std::to_string(plan.epoch()));
  metadata.emplace_back("position", std::to_string(state.position));
  if (state.num_position_ranks > 0) {
    metadata.emplace_back("num_position_ranks", std::to_string(state.num_position_ranks));
  }
  metadata.emplace_back("pruning", plan.pruning() ? "1" : "0");
  metadata.emplace_back("rescale", to_text(static_cast<double>(selection.rescale)));
  write_report(selection.report, metadata);
  if (selection.kept.count() < selection.kept.size()) {
    tensors.push_back(bitmap_tensor(kKept, selection.kept));
  }
  if (selection.rescaled.count() > 0) {
    tensors.push_back(bitmap_tensor(kRescaled, selection.rescaled));
  }
}

std::optional<EpochPlan> read_plan(const SafetensorsReader& file, const PrunerOptions& options) {
  if (file.find_metadata("epoch") == nullptr) return std::nullopt;
  const std::uint64_t epoch = read_integer(file, "epoch");
  if (epoch >= options.num_epochs) {
    file.fail(concat("field epoch must be below ", options.num_epochs, ", got ", epoch));
  }
  Selection selection = Selection::all(options.num_samples);
  if (const Tensor* kept = file.find_tensor(kKept)) {
    selection.kept = read_bitmap(file, *kept, options.num_samples);
  }
  if (const Tensor* rescaled = file.find_tensor(kRescaled)) {
    selection.rescaled = read_bitmap(file, *rescaled, options.num_samples);
  }
  if (!is_subset(selection.rescaled, selection.kept)) {
    file.fail(concat("tensor ", kRescaled, " has samples that are not in ", kKept));
  }
  selection.rescale = static_cast<float>(read_real(file, "rescale"));
  if (!(selection.rescale > 0.0F && selection.rescale < std::numeric_limits<float>::infinity())) {
    file.fail(
        concat("field rescale must be a finite number above 0, got ", read_text(file, "rescale")));
  }
  selection.report = read_report(file);
  const bool pruning = read_integer(file, "pruning") != 0;
  return EpochPlan(std::move(selection), options.seed, epoch, pruning,
                   options.homogeneous_batch_size);
}

}  // namespace

SafetensorsWriter pack_state(const PrunerOptions& options, const RunState& state,
                             std::span<const ScorerArray> arrays) {
  Metadata metadata = {{"format", std::string(kFormat)},
                       {"format_version", std::to_string(kFormatVersion)}};
  write_options(options, metadata);
  metadata.emplace_back("num_observations", std::to_string(state.num_observations));
  metadata.emplace_back("num_skipped_observations", std::to_string(state.num_skipped_observations));
  metadata.emplace_back("num_epochs_started", std::to_string(state.num_epochs_started));
  metadata.emplace_back("num_samples_planned", std::to_string(state.num_samples_planned));
  write_numbers(kNumberPrefix, state.numbers, metadata);

  std::vector<Tensor> tensors;
  for (const ScorerArray& array : arrays) {
    tensors.push_back(array_tensor(array, options.num_samples));
  }
  if (!options.labels.empty()) tensors.push_back(labels_tensor(options.labels));
  if (state.plan) pack_plan(state, metadata, tensors);
  if (!state.attachments.empty()) {
    metadata.emplace_back("num_attachments", std::to_string(state.attachments.size()));
  }
  for (std::size_t rank = 0; rank < state.attachments.size(); ++rank) {
    if (state.attachments[rank].empty()) continue;
    tensors.push_back(bytes_tensor(concat(kAttachment, rank), state.attachments[rank]));
  }
  return {std::move(metadata), std::move(tensors)};
}

SafetensorsReader open_state(std::string source, std::span<const std::byte> bytes) {
  SafetensorsReader file(std::move(source), bytes);
  if (const std::string& format = read_text(file, "format"); !is_name(format, kFormat)) {
    file.fail(concat("not the state of a pruner: its format is ", format, ", not ", kFormat));
  }
  if (const std::uint64_t version = read_integer(file, "format_version");
      version > kFormatVersion) {
    file.fail(concat("written by a newer tamis (format ", version, "); this one reads up to ",
                     kFormatVersion));
  }
  return file;
}

void verify_state(SafetensorsReader& file, const PrunerOptions& options) {
  check_same_options(file, options);
  file.verify_data();
  check_same_labels(file, options);
}

namespace {

// Throws unless the file has the arrays of the score, with one row per sample.
void check_arrays(const SafetensorsReader& file, const PrunerOptions& options) {
  std::unique_ptr<Scorer> one;
  try {
    one = make_scorer(options.score.value(), 1);
  } catch (const std::invalid_argument& error) {
    file.fail(concat("its options cannot be used here: ", error.what()));
  }
  check_score(file, options, read_numbers(file, kNumberPrefix), *one);
}

}  // namespace

PrunerOptions verify_and_read_options(SafetensorsReader& file) {
  file.verify_data();
  PrunerOptions options = read_options(file);
  // Before memory is taken for this many samples: the file has the bytes of all their rows.
  for (const Tensor& tensor : file.tensors()) {
    const bool has_rows =
        tensor.name != kKept && tensor.name != kRescaled && !tensor.name.starts_with(kAttachment);
    if (has_rows && (tensor.shape.empty() || tensor.shape[0] != options.num_samples)) {
      file.fail(concat("tensor ", tensor.name, " must have ", options.num_samples, " rows"));
    }
  }
  check_arrays(file, options);
  options.labels = read_labels(file, options.num_samples);
  return options;
}

RunState read_state(const SafetensorsReader& file, const PrunerOptions& options,
                    std::size_t num_ranks) {
  const auto read_count = [&](std::string_view key) {
    return file.find_metadata(key) != nullptr ? read_integer(file, key) : 0;
  };
  RunState state{.numbers = read_numbers(file, kNumberPrefix),
                 .num_observations = read_integer(file, "num_observations"),
                 .num_skipped_observations = read_integer(file, "num_skipped_observations"),
                 .num_epochs_started = read_integer(file, "num_epochs_started"),
                 .num_samples_planned = read_integer(file, "num_samples_planned"),
                 .plan = read_plan(file, options),
                 .num_position_ranks = read_count("num_position_ranks")};
  if (state.num_samples_planned / options.num_samples > state.num_epochs_started) {
    file.fail(concat("field num_samples_planned must be at most ", options.num_samples,
                     " for each of the ", state.num_epochs_started, " epochs, got ",
                     state.num_samples_planned));
  }
  if (state.plan) {
    state.position = static_cast<std::size_t>(read_integer(file, "position"));
    if (state.position > state.plan->size()) {
      file.fail(
          concat("field position must be in [0, ", state.plan->size(), "], got ", state.position));
    }
  }
  const std::uint64_t num_attachments = read_count("num_attachments");
  if (num_attachments > 0 && num_attachments != num_ranks) {
    file.fail(concat("has attachments of ", num_attachments, " ranks, but the run has ", num_ranks,
                     "; load it with as many, or save it at the end of an epoch"));
  }
  state.attachments.resize(static_cast<std::size_t>(num_attachments));
  for (std::size_t rank = 0; rank < state.attachments.size(); ++rank) {
    const Tensor* const tensor = file.find_tensor(concat(kAttachment, rank));
    if (tensor != nullptr) state.attachments[rank] = tensor->bytes;
  }
  return state;
}

void check_score(const SafetensorsReader& file, const PrunerOptions& options,
                 const OptionMap& numbers, Scorer& scorer) {
  for (const ScorerArray& array : scorer.arrays()) {
    const Tensor* const tensor = file.find_tensor(array.name);
    if (tensor == nullptr) file.fail(concat("tensor ", array.name, " is missing"));
    const std::size_t size = array.bytes.size() / scorer.num_samples() * options.num_samples;
    if (tensor->dtype != array.dtype || tensor->bytes.size() != size) {
      file.fail(concat("tensor ", array.name, " must be ", array.dtype, " of ", size,
                       " bytes, got ", tensor->dtype, " of ", tensor->bytes.size()));
    }
    if (!tensor->is_finite) {
      file.fail(concat("tensor ", array.name, " must hold finite numbers or NaN, got an infinite ",
                       "one at ", find_infinite(tensor->bytes)));
    }
  }
  for (const auto& [name, value] : scorer.numbers()) {
    if (!numbers.contains(name)) file.fail(concat("field ", kNumberPrefix, name, " is missing"));
  }
  if (!scorer.is_possible(numbers)) {
    file.fail(concat("fields ", kNumberPrefix, "*: score ", scorer.spec().name,
                     " can never have come to these numbers"));
  }
}

void read_arrays(const SafetensorsReader& file, std::uint64_t first, Scorer& scorer) {
  for (const ScorerArray& array : scorer.arrays()) {
    const std::size_t row = array.bytes.size() / scorer.num_samples();
    const std::byte* const from =
        file.find_tensor(array.name)->bytes.data() + static_cast<std::size_t>(first) * row;
    const Parts parts(array.bytes.size(), 64, kBytesPerThread);
    parts.run([&](std::size_t part) {
      const std::size_t begin = parts.begin(part);
      std::memcpy(array.bytes.data() + begin, from + begin, parts.end(part) - begin);
    });
  }
}

}  // namespace tamis::detail
