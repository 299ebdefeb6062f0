// Loss average: a moving average of a sample's losses; the score of epsilon-greedy.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/scorer.h"

namespace tamis {

struct LossAverageOptions {
  // Share of the newest loss in the average, in (0, 1]. The value is ours.
  double decay = 0.1;
};

// s_i = (1 - decay) s_i + decay u, and s_i = u at the first visit, where u is the sample's own
// loss, or the batch's mean loss if only that is known.
std::unique_ptr<Scorer> make_loss_average(std::size_t num_samples,
                                          const LossAverageOptions& options = {});

}  // namespace tamis
