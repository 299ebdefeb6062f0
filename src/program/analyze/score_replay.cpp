#include "program/analyze/score_replay.h"

#include <fmt/format.h>

#include <cmath>

#include "base/require_memory.h"
#include "tamis/registry.h"

namespace tamis::program {

std::string_view to_text(LossKind kind) {
  if (kind == LossKind::mean_loss) return "batch losses";
  return kind == LossKind::sample_losses ? "per-sample losses" : "output gradients";
}

void require_memory_for(std::size_t num_samples, double bytes_per_sample,
                        const std::string& source) {
  detail::require_memory(bytes_per_sample * static_cast<double>(num_samples),
                         fmt::format("{}: num_samples {}", source, num_samples));
}

Spec gradient_score(const Recording& recording) {
  Spec score{"output-gradient"};
  if (recording.norm_order() == 1) score.options["cross_entropy"] = 1.0;
  return score;
}

ScoreReplay::ScoreReplay(const Spec& score, const Recording& recording)
    : scorer_(make_scorer(score, recording.num_samples())),
      has_its_norms_(scorer_->norm_order() == recording.norm_order()),
      samples_(recording.samples()) {}

void ScoreReplay::apply(const Observation& observation) {
  const bool applied = std::isfinite(observation.mean_loss) && scorer_->observe(observation);
  ++(applied ? num_observations_ : num_skipped_);
}

void ScoreReplay::observe(const RecordedStep& step) {
  const auto mean_loss = static_cast<double>(step.mean_loss);
  if (sees() == LossKind::sample_losses) return observe_losses(step);
  if (sees() == LossKind::mean_loss) {
    return apply({.indices = step.indices, .mean_loss = mean_loss});
  }
  if (step.norms.empty() || !has_its_norms_) {
    ++num_without_norms_;
  } else {
    apply({.indices = step.indices, .mean_loss = mean_loss, .norms = step.norms});
  }
}

void ScoreReplay::observe_losses(const RecordedStep& step) {
  indices_.clear();
  losses_.clear();
  double sum = 0.0;
  for (std::size_t k = 0; k < step.places.size(); ++k) {
    if (!std::isfinite(step.losses[k])) continue;
    indices_.push_back(samples_[step.places[k]]);
    losses_.push_back(step.losses[k]);
    sum += static_cast<double>(step.losses[k]);
  }
  if (indices_.empty()) return;
  apply({.indices = indices_,
         .mean_loss = sum / static_cast<double>(losses_.size()),
         .losses = losses_});
}

std::vector<float> ScoreReplay::scores() const {
  Array<float> scratch;
  const std::span<const float> all = scorer_->scores(scratch);
  return {all.begin(), all.end()};
}

std::vector<float> ScoreReplay::recorded_scores() const {
  Array<float> scratch;
  const std::span<const float> all = scorer_->scores(scratch);
  std::vector<float> scores;
  scores.reserve(samples_.size());
  for (const std::uint32_t sample : samples_) scores.push_back(all[sample]);
  return scores;
}

}  // namespace tamis::program
