// Homogeneous batches: a selection and an order in which every batch holds samples of one weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random/random.h"
#include "tamis/array.h"
#include "tamis/selection.h"

namespace tamis::detail {

// True if the samples of the selection have two different weights.
bool has_two_weights(const Selection& selection);

// Puts pruned samples back, uniformly at random, until the rescaled ones fill whole batches; the
// weight falls so that its sum stays what it was. If there are not enough of them, all come back
// and no sample is rescaled. Returns how many were put back.
std::size_t fill_batches(Selection& selection, std::size_t batch_size, RandomStream& random);

// The same samples, in an order of which every `batch_size` in a row have one weight, the batches
// in uniformly random order. Last come the weight-1 samples that fill no batch, then such rescaled
// ones, of which fill_batches leaves none.
Array<std::uint32_t> group_by_weight(const Array<std::uint32_t>& order, const Bitmap& rescaled,
                                     std::size_t batch_size, RandomStream& random);

}  // namespace tamis::detail
