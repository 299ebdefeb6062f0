// Batch Loss Score (BLS): a moving average of the mean losses of the batches a sample took part in.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>

#include "tamis/scorer.h"

namespace tamis {

// As BatchLossOptions::initial_score: every sample starts at the loss of the first observed batch.
inline constexpr double kFirstBatchLoss = std::numeric_limits<double>::quiet_NaN();

struct BatchLossOptions {
  // Share of the old score in the new one, in [0, 1); the paper's alpha. 0 keeps the last loss
  // only; 1 would freeze the scores.
  double alpha = 0.7;
  // Score before a sample's first observation: a finite number, or kFirstBatchLoss (the paper).
  double initial_score = kFirstBatchLoss;
};

// s_i = alpha s_i + (1 - alpha) L. Accepts a mean loss, or losses, which it averages.
std::unique_ptr<Scorer> make_batch_loss(std::size_t num_samples,
                                        const BatchLossOptions& options = {});

}  // namespace tamis
