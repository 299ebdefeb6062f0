// The files of a recording: which samples, steps shard by shard, and true losses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "tamis/recording.h"

namespace tamis::detail {

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
  void truncate(std::uint64_t count, const std::vector<bool>& is_recorded);
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
                       const std::vector<bool>& is_recorded);
TrueLosses read_true_losses(const std::filesystem::path& path, std::size_t num_recorded);

// Shards in the folder: files 0, 1, ... without a gap.
std::size_t count_shards(const std::filesystem::path& folder);
// Epochs for which the folder has true losses, ascending.
std::vector<std::uint64_t> true_loss_epochs(const std::filesystem::path& folder);

// Removes what a process that was killed had begun to write.
void remove_unfinished(const std::filesystem::path& folder);
// Removes all files that the functions above write, and no others.
void remove_record_files(const std::filesystem::path& folder);

// One bit per sample of the data set.
std::vector<bool> mark_samples(const RecordSamples& samples);

}  // namespace tamis::detail
