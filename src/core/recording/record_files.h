// The files of a recording: which samples, steps shard by shard, and true losses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "tamis/recording.h"

namespace tamis::detail {

// Which samples of a data set are recorded. A file only says how many samples there are, so a bit
// for each is taken up to a megabyte, or as far as the recorded samples themselves go.
class RecordedSamples {
 public:
  // `samples`, ascending and below num_samples, must outlive this.
  RecordedSamples(std::size_t num_samples, std::span<const std::uint32_t> samples);

  std::size_t num_samples() const { return num_samples_; }
  // For an index below num_samples().
  bool contains(std::uint32_t index) const {
    return marks_.empty() ? std::binary_search(samples_.begin(), samples_.end(), index)
                          : marks_[index];
  }

 private:
  std::size_t num_samples_;
  std::span<const std::uint32_t> samples_;
  std::vector<bool> marks_;  // empty if there are too many samples
};

// Consecutive steps. Entry k of `epochs`, `batch_sizes` and `mean_losses` is step first_step + k.
struct RecordShard {
  std::uint64_t first_step = 0;
  std::vector<std::uint32_t> epochs;
  std::vector<std::uint32_t> batch_sizes;
  std::vector<float> mean_losses;
  std::vector<std::uint32_t> indices;  // of all batches, one after the other
  std::vector<float> own_losses;       // one per index of a recorded sample, in that order
  // Norms of all rows of the batches that were watched: of all samples, because their mean cannot
  // be known for every power from those of a few. Both empty if no batch was watched.
  std::vector<std::uint32_t> num_norms = {};  // of each step; 0: not watched
  std::vector<float> norms = {};

  std::uint64_t num_steps() const { return batch_sizes.size(); }
  std::size_t num_bytes() const;
  // Keeps the first `count` steps.
  void truncate(std::uint64_t count, const RecordedSamples& recorded);
};

struct RecordSamples {
  std::size_t num_samples = 0;
  int norm_order = 2;
  std::size_t shard_bytes = 0;
  std::vector<std::uint32_t> samples;  // ascending
};

std::filesystem::path samples_path(const std::filesystem::path& folder);
std::filesystem::path shard_path(const std::filesystem::path& folder, std::size_t number);
std::filesystem::path true_losses_path(const std::filesystem::path& folder, std::uint64_t epoch);

// Complete or not at all; throw std::runtime_error.
void write_samples(const std::filesystem::path& folder, const RecordSamples& samples);
void write_shard(const std::filesystem::path& folder, std::size_t number, const RecordShard& shard);
void write_true_losses(const std::filesystem::path& folder, const TrueLosses& truth);

// Verified; throw std::runtime_error with the file and what is wrong.
RecordSamples read_samples(const std::filesystem::path& folder);
RecordShard read_shard(const std::filesystem::path& folder, std::size_t number,
                       const RecordedSamples& recorded);
TrueLosses read_true_losses(const std::filesystem::path& path, std::size_t num_recorded);

// Shards in the folder: files 0, 1, ... without a gap.
std::size_t count_shards(const std::filesystem::path& folder);
// Epochs for which the folder has true losses, ascending.
std::vector<std::uint64_t> true_loss_epochs(const std::filesystem::path& folder);

// Removes what a process that was killed had begun to write.
void remove_unfinished(const std::filesystem::path& folder);
// Removes all files that the functions above write, and no others.
void remove_record_files(const std::filesystem::path& folder);

}  // namespace tamis::detail
