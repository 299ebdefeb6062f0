// What one sample's batch losses are made of, and what its score is made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tamis::analysis {

// One recorded visit: a training step whose batch held the sample.
struct Visit {
  double batch_loss = 0.0;   // L, mean loss of the batch
  double sample_loss = 0.0;  // l, the per-sample loss in that batch
  std::uint32_t batch_size = 1;
};

// One entry per visit. signal + noise is the batch loss; filtered_signal + filtered_noise +
// initial_term is the score (the paper's proposition), up to rounding.
struct Decomposition {
  std::vector<double> signal;           // l / B
  std::vector<double> noise;            // L - l / B: the other samples' part of the batch loss
  std::vector<double> filtered_signal;  // h * signal, with h[n] = (1-a) a^n
  std::vector<double> filtered_noise;   // h * noise
  std::vector<double> initial_term;     // a^k s0, k = 1 after the first visit
  // The score itself, s = a s + (1-a) L from s0 on: computed from the batch losses alone, so that
  // it can be held against the sum of the parts.
  std::vector<double> score;
};

// Splits one sample's visits, given in order, for a batch loss score with decay `alpha` that stood
// at `initial_score` before the first of them. Throws std::invalid_argument unless alpha is in [0,
// 1), all losses and the initial score are finite and all batch sizes are positive. Visits that a
// score skips (a loss that is not finite) must be left out: they do not change the score.
Decomposition decompose(std::span<const Visit> visits, double alpha, double initial_score);

// filtered_signal + filtered_noise + initial_term, one entry per visit.
std::vector<double> sum_of_parts(const Decomposition& decomposition);

struct SignalAndNoise {
  std::vector<double> signal;
  std::vector<double> noise;
};

// The two halves of the batch losses without the filtering. Throws as decompose() does.
SignalAndNoise split_visits(std::span<const Visit> visits);

}  // namespace tamis::analysis
