// How well every score agrees with the true losses of the recorded samples, over the epochs.
#pragma once

#include <cstdint>
#include <vector>

#include "program/analyze/recorded_visits.h"
#include "tamis/recording.h"
#include "tamis/scorer.h"
#include "tamis/types.h"

namespace tamis::program {

// Agreement of one score with the truth; NaN where it is not defined.
struct Agreement {
  double spearman = 0.0;
  double pearson = 0.0;
  double top_overlap = 0.0;  // of the highest kTopShare
  std::size_t num_scored = 0;
};

inline constexpr double kTopShare = 0.3;

struct ScoreFidelity {
  Spec score;
  LossKind sees = LossKind::mean_loss;
  std::vector<Agreement> epochs = {};
};

struct Fidelity {
  // True: every recorded sample was measured after the epoch. False: the loss that each had at its
  // last visit, which is older and of a model that was still training.
  bool is_measured = true;
  std::vector<std::uint64_t> epochs;
  // Of all registered scores, with their default options, output-gradient with those that fit the
  // recorded norms; without it if there are none.
  std::vector<ScoreFidelity> scores;
  std::vector<ScoreFidelity> alphas;  // of batch-loss for analyzed_alphas()
  // Scores of `checked` by place, at the end of the recording.
  std::vector<float> final_scores;
};

// What measure_fidelity() takes for each sample of the data set: all scores at once, one or two
// floats each, 8 registered and 13 alphas.
inline constexpr double kFidelityBytes = 300.0;

// Replays the recording for all registered scores, and for `checked`, a batch loss score.
// Empty epochs if there is nothing to compare with.
Fidelity measure_fidelity(const Recording& recording, const RecordedVisits& visits,
                          const Spec& checked);

}  // namespace tamis::program
