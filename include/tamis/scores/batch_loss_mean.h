// Batch loss mean: the plain mean, over all visits of a sample, of how far the batch's loss stood
// above the run's. BLS without forgetting.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/scorer.h"

namespace tamis {

// s_i = mean over the visits of L / mu - 1, mu a running mean of L. Accepts a mean loss, or losses,
// which it averages. Skips losses that are not positive.
std::unique_ptr<Scorer> make_batch_loss_mean(std::size_t num_samples);

}  // namespace tamis
