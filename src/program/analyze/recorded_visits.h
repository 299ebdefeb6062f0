// The visits of every recorded sample, and where the epochs of a recording end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tamis/analysis/decomposition.h"
#include "tamis/recording.h"

namespace tamis::program {

struct EpochEnd {
  std::uint64_t epoch = 0;
  std::uint64_t num_steps = 0;  // taken by then
};

struct RecordedVisits {
  // By place in samples(), in order. Steps that a score skips, because their loss is not finite,
  // are left out; an index that stands twice in a batch counts once.
  std::vector<std::vector<analysis::Visit>> visits;
  // False where there is no visit, or the per-sample loss of one is not known.
  std::vector<bool> is_complete;
  std::vector<EpochEnd> epochs;  // in order
  std::uint64_t num_steps = 0;
  std::uint64_t num_skipped = 0;
  std::uint32_t batch_size = 0;   // the largest
  double first_batch_loss = 0.0;  // of the first step that was not skipped
  std::size_t most_visits = 0;    // of one complete sample
};

// True if a step has a finite mean loss.
bool has_finite_loss(const Recording& recording);

// Throws std::runtime_error if the recording is damaged or has no finite loss.
RecordedVisits read_visits(const Recording& recording);

}  // namespace tamis::program
