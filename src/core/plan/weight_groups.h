// Homogeneous batches: a selection and an order in which every batch holds samples of one weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random/random.h"
#include "tamis/array.h"
#include "tamis/score_view.h"
#include "tamis/selection.h"

namespace tamis::detail {

// True if the samples of the selection have two different weights.
bool has_two_weights(const Selection& selection);

// Puts pruned samples of this rank back, uniformly at random, until its rescaled ones fill whole
// batches; the weight, one for all ranks, falls so that its sum stays what it was. A rank that has
// not enough pruned samples gets all of them back, and none of its samples is rescaled. Returns how
// many came back on all ranks. Collective.
std::uint64_t fill_batches(const ScoreView& scores, std::size_t batch_size, RandomStream& random,
                           Selection& selection);

// The same samples, in an order of which every `batch_size` in a row have one weight, the batches
// in uniformly random order. Last come the weight-1 samples that fill no batch, then such rescaled
// ones, of which fill_batches leaves none.
Array<std::uint32_t> group_by_weight(const Array<std::uint32_t>& order, const Bitmap& rescaled,
                                     std::size_t batch_size, RandomStream& random);

}  // namespace tamis::detail
