// Batch Loss Reconstruction (BLR): per-sample losses reconstructed from the mean losses of many
// overlapping batches, as tomography does from projections.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/scorer.h"

namespace tamis {

struct ReconstructionOptions {
  // How far one batch moves its samples, in (0, 1]; lambda in the formula.
  double step = 0.2;
};

// Score mu w_i, with w_i = exp(v_i) = 1 at the start. For a batch with mean loss L > 0:
// m = mean of w_i over the batch; mu += max(0.01, 1 / (t + 1)) (L / m - mu), mu = L / m at the
// first observation; w_i *= (L / (mu m))^step. Accepts a mean loss, or losses, which it averages.
// Skips losses that are not positive: use batch-loss for losses that can be negative.
std::unique_ptr<Scorer> make_reconstruction(std::size_t num_samples,
                                            const ReconstructionOptions& options = {});

}  // namespace tamis
