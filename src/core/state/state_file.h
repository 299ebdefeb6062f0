// State files: what the tensors and the metadata of the container mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/safetensors.h"
#include "tamis/epoch_plan.h"
#include "tamis/pruner.h"
#include "tamis/scorer.h"

namespace tamis::detail {

// What a run saves besides its options and the arrays of its score: that of the whole data set,
// whatever the layout.
struct RunState {
  OptionMap numbers;  // of the score
  std::uint64_t num_observations = 0;
  std::uint64_t num_skipped_observations = 0;
  std::uint64_t num_epochs_started = 0;
  std::uint64_t num_samples_planned = 0;  // over all started epochs
  std::optional<EpochPlan> plan;          // of the whole epoch
  std::size_t position = 0;               // in its order
  // Of a sharded run, in the middle of an epoch: position counts in the plan of each of this many
  // ranks. 0: it counts in the whole plan.
  std::uint64_t num_position_ranks = 0;
  // One per rank, not owned; none if all are empty.
  std::vector<std::span<const std::byte>> attachments = {};
};

// Refers to the state and the arrays, which have one row per sample of the whole data set.
SafetensorsWriter pack_state(const PrunerOptions& options, const RunState& state,
                             std::span<const ScorerArray> arrays);

// All of the following throw std::runtime_error with the name of the file.

// The header of a state, of a format that this version reads.
SafetensorsReader open_state(std::string source, std::span<const std::byte> bytes);
// Verifies the data. Throws unless the state belongs to a run with these options.
void verify_state(SafetensorsReader& file, const PrunerOptions& options);
// Verifies the data and returns the options of the run that it belongs to.
PrunerOptions verify_and_read_options(SafetensorsReader& file);

// Of a verified state that belongs to these options, for a run on this many ranks.
RunState read_state(const SafetensorsReader& file, const PrunerOptions& options,
                    std::size_t num_ranks);
// Throws unless the file has all arrays and `numbers` all numbers of the score. Changes nothing.
void check_score(const SafetensorsReader& file, const PrunerOptions& options,
                 const OptionMap& numbers, Scorer& scorer);
// Copies the rows of the samples from `first` on that the score is over. Requires: check_score()
// has passed.
void read_arrays(const SafetensorsReader& file, std::uint64_t first, Scorer& scorer);

}  // namespace tamis::detail
