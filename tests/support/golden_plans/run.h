// Runs a scenario and takes the digests of what the library made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/golden_plans/scenario.h"

namespace tamis::test::golden {

// What one epoch, or what was left of it after load(), was.
struct EpochDigests {
  std::uint64_t epoch = 0;
  // Samples of every rank in training order, with those that fill up.
  std::uint64_t order = 0;
  // The weight of every sample of the data set, NaN for those that are not in the plan.
  std::uint64_t weights = 0;
  // Whether the schedule prunes it, samples selected by all ranks, samples and fillings of every
  // rank.
  std::uint64_t counts = 0;
  // Mean weight of every batch and the progress after it, by rank; pruned_share().
  std::uint64_t steps = 0;
  // How the policy came to it, on rank 0.
  std::uint64_t report = 0;
  // Scores of the whole data set before it, and observations booked and skipped so far.
  std::uint64_t scores = 0;
  std::uint64_t observations = 0;
};

struct RunDigests {
  std::vector<EpochDigests> epochs;
  // At the end of the run.
  std::uint64_t scores = 0;
  std::uint64_t observations = 0;
  // The saved state: tensors by name, with type, shape and bytes; metadata without the format's
  // name, version and checksums.
  std::uint64_t tensors = 0;
  std::uint64_t metadata = 0;
  std::string metadata_text;
};

// Throws std::runtime_error with what the library, or a rank, refused.
RunDigests run(const Scenario& scenario);

// Loads a state that was saved where the scenario is resumed (`never`: before the first epoch) with
// load_file() and runs to the end of the scenario.
RunDigests run_from(const Scenario& scenario, RankLayout layout, const std::filesystem::path& path);

// Sum over all epochs of one of their digests.
std::uint64_t fold(const std::vector<EpochDigests>& epochs, std::uint64_t EpochDigests::*field);

// A line of plans.txt: the name, one digest for each of column_names(), and four digits of each
// epoch's digests together.
std::string to_line(const std::string& name, const RunDigests& digests);
std::vector<std::string> column_names();

// A recorded run of one process, with the per-sample losses of `samples` (all if empty), and what
// can be read back from a recording.
void write_recording(const Scenario& scenario, const std::filesystem::path& folder,
                     std::vector<std::uint32_t> samples, std::size_t shard_bytes);
struct RecordingDigests {
  std::uint64_t num_samples = 0;
  std::uint64_t num_steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t batches = 0;
  std::uint64_t true_losses = 0;
};
RecordingDigests digest_recording(const std::filesystem::path& folder);

}  // namespace tamis::test::golden
