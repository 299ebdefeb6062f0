// Recorder: writes down a training run step by step, for analysis and replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "tamis/types.h"

namespace tamis {

namespace detail {
class RecordedSamples;
struct RecordShard;
}  // namespace detail

struct RecorderOptions {
  std::size_t num_samples = 0;  // size of the data set, in [1, 2^32 - 1]
  // Samples whose per-sample losses are kept, drawn at random; all if there are not as many. At
  // least 1.
  std::size_t num_recorded = 10'000;
  std::uint64_t seed = 0;  // draws them
  // Of the norms; see Scorer::norm_order. Pruner::record sets it.
  int norm_order = 2;
  // These instead of random ones, in any order, if not empty.
  std::vector<std::uint32_t> samples = {};
  // What is kept in memory, and the size of a file; at least 1.
  std::size_t shard_bytes = std::size_t{4} << 20U;
};

// Throws std::invalid_argument if a field is out of range or a sample is named twice.
void validate(const RecorderOptions& options);

// Keeps of every step the epoch, the samples of the batch and their mean loss, for the recorded
// samples their per-sample losses, and for all samples the norms of their output gradients where
// these are watched, as a folder of safetensors files: 4 bytes per sample of a batch, 12 per batch,
// 4 per per-sample loss and 4 per norm. Memory is bounded by `shard_bytes`; a file appears complete
// or not at all. Steps are counted from 0. Not thread-safe. Recording reads it back.
class Recorder {
 public:
  // A new recording; the folder is made if it is missing. Throws std::invalid_argument if an option
  // is out of range and std::runtime_error if the folder has a recording already.
  static Recorder create(const std::filesystem::path& folder, const RecorderOptions& options);
  // Goes on after the last step that was written. Throws std::runtime_error if there is no
  // recording, or a damaged one.
  static Recorder open(const std::filesystem::path& folder);
  // True if the folder has a recording.
  static bool exists(const std::filesystem::path& folder);
  // Removes the files of a recording, whole or half-written, and the folder if nothing else is in
  // it. Does nothing if there is no such folder.
  static void remove(const std::filesystem::path& folder);

  Recorder(Recorder&&) noexcept;
  Recorder& operator=(Recorder&&) noexcept;
  // Flushes, but cannot report a failure.
  ~Recorder();

  const std::filesystem::path& folder() const { return folder_; }
  std::size_t num_samples() const { return num_samples_; }
  int norm_order() const { return norm_order_; }
  // The recorded samples, ascending.
  std::span<const std::uint32_t> samples() const { return samples_; }
  // Steps so far.
  std::uint64_t num_steps() const;

  // One step. `losses` has one entry per index, or is empty where only the mean is known. `norms`
  // is empty too, or has one entry per index and perhaps more, of samples that fill up the batch.
  // Either may be NaN or infinite: a score would skip that step, and so does analysis. Throws
  // std::out_of_range for an index, std::invalid_argument for an empty batch, losses of another
  // length or fewer norms, and std::runtime_error if a full shard cannot be written; the step is
  // kept even then.
  void record(std::uint64_t epoch, std::span<const std::uint32_t> indices, double mean_loss,
              std::span<const float> losses = {}, std::span<const float> norms = {});

  // What the model, as it is now, loses on each of samples(): the truth that scores are held
  // against. Written at once. Throws std::invalid_argument unless there is one loss per sample.
  void record_true_losses(std::uint64_t epoch, std::span<const float> losses);

  // Forgets all steps from `num_steps` on, and true losses measured after them: a run that goes on
  // from a checkpoint makes them again. Throws std::runtime_error if there are not as many steps.
  void rewind(std::uint64_t num_steps);

  // Puts every step on disk. Throws std::runtime_error.
  void flush();

 private:
  explicit Recorder(std::filesystem::path folder);

  std::filesystem::path folder_;
  std::size_t num_samples_ = 0;
  int norm_order_ = 2;
  std::size_t shard_bytes_ = 0;
  std::vector<std::uint32_t> samples_;
  std::unique_ptr<detail::RecordedSamples> recorded_;  // looks into samples_
  std::size_t shard_number_ = 0;
  std::unique_ptr<detail::RecordShard> shard_;  // the last one, as far as it goes
  bool is_written_ = true;                      // all of it
};

}  // namespace tamis
