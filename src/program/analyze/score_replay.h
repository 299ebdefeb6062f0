// Scores of a recorded run, made again step by step.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tamis/pruner.h"
#include "tamis/recording.h"
#include "tamis/types.h"

namespace tamis::program {

// True if the score tells the samples of one batch apart when it is given one loss per sample.
bool uses_sample_losses(const Spec& score);

// One score, fed with the steps of a recording. A score that uses per-sample losses sees those of
// the recorded samples and nothing else, since no others are known.
class ScoreReplay {
 public:
  ScoreReplay(const Spec& score, const Recording& recording);

  void observe(const RecordedStep& step);

  // The pruner that holds the score.
  Pruner take_pruner() && { return std::move(pruner_); }
  // Of the recorded samples, in the order of samples(); NaN where unscored.
  std::vector<float> recorded_scores() const;

 private:
  Pruner pruner_;
  bool uses_sample_losses_;
  std::span<const std::uint32_t> samples_;
  std::vector<std::uint32_t> indices_;  // scratch of observe()
  std::vector<float> losses_;
};

}  // namespace tamis::program
