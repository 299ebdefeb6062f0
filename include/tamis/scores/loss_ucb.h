// Upper confidence bound of the loss: its moving average plus its moving variance; the score of
// UCB.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/scorer.h"

namespace tamis {

struct LossUcbOptions {
  // Share of the newest loss in mean and variance, in (0, 1]; b in the formula. The value is ours.
  double decay = 0.1;
  // How much the variance counts, at least 0; c in the formula. The value is ours.
  double confidence = 1.0;
};

// v_i = (1-b) v_i + b (u - m_i)^2 with the old m_i, then m_i = (1-b) m_i + b u; score m_i + c v_i.
// At the first visit m_i = u and v_i = 0. u is the per-sample loss, or the batch's mean loss if
// only that is known.
std::unique_ptr<Scorer> make_loss_ucb(std::size_t num_samples, const LossUcbOptions& options = {});

}  // namespace tamis
