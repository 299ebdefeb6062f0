// Random and highest samples among all ranks' parts, each rank seeing its own part only.
#pragma once

#include <cstdint>

#include "base/random/random.h"
#include "tamis/bitmap.h"
#include "tamis/policy.h"

namespace tamis::detail {

// The sum over all ranks.
std::uint64_t sum_over_ranks(std::uint64_t number, const PartInput& input);

// This rank's part of a uniformly random subset of `count` of all ranks' candidates. Which ones
// depends on (seed, epoch, purpose) and the set of candidates alone, not on how it is cut into
// parts. Some 2 KiB are sent, however many samples there are. Requires: `num_candidates` is the sum
// over all ranks and not below `count`.
Bitmap choose_part(const Bitmap& candidates, std::uint64_t num_candidates, std::uint64_t count,
                   const PartInput& input, Purpose purpose);

// This rank's part of the `count` highest scores of all ranks; equal ones at the border are chosen
// uniformly. Sends 41 KiB. Requires: count is at most the number of scored samples of all ranks.
Bitmap highest_part(std::uint64_t count, const PartInput& input, Purpose purpose);

// The same, but first the samples that have no score.
Bitmap unscored_then_highest_part(std::uint64_t count, const PartInput& input, Purpose purpose);

}  // namespace tamis::detail
