#include "program/analyze/score_replay.h"

#include <array>
#include <cmath>

#include "tamis/registry.h"

namespace tamis::program {

namespace {

Pruner make_pruner(const Spec& score, std::size_t num_samples) {
  return Pruner(
      {.num_samples = num_samples, .num_epochs = 1, .policy = {.name = "none"}, .score = score});
}

}  // namespace

bool uses_sample_losses(const Spec& score) {
  Pruner pruner = make_pruner(score, 2);
  const std::array<std::uint32_t, 2> batch = {0, 1};
  const std::array<float, 2> losses = {1.0F, 2.0F};
  pruner.observe(batch, losses);
  const std::vector<float> scores = pruner.scores();
  return scores[0] != scores[1];
}

ScoreReplay::ScoreReplay(const Spec& score, const Recording& recording)
    : pruner_(make_pruner(score, recording.num_samples())),
      uses_sample_losses_(uses_sample_losses(score)),
      samples_(recording.samples()) {}

void ScoreReplay::observe(const RecordedStep& step) {
  if (!uses_sample_losses_) {
    pruner_.observe(step.indices, static_cast<double>(step.mean_loss));
    return;
  }
  indices_.clear();
  losses_.clear();
  for (std::size_t k = 0; k < step.places.size(); ++k) {
    if (!std::isfinite(step.losses[k])) continue;
    indices_.push_back(samples_[step.places[k]]);
    losses_.push_back(step.losses[k]);
  }
  if (!indices_.empty()) pruner_.observe(indices_, losses_);
}

std::vector<float> ScoreReplay::recorded_scores() const {
  const std::vector<float> all = pruner_.scores();
  std::vector<float> scores;
  scores.reserve(samples_.size());
  for (const std::uint32_t sample : samples_) scores.push_back(all[sample]);
  return scores;
}

}  // namespace tamis::program
