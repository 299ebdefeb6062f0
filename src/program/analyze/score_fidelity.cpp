#include "program/analyze/score_fidelity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "program/analyze/score_replay.h"
#include "program/analyze/signal_analysis.h"
#include "tamis/analysis/correlation.h"
#include "tamis/registry.h"

namespace tamis::program {

namespace {

// At most ten epochs, at even distances, the last one among them.
std::vector<EpochEnd> spread(const std::vector<EpochEnd>& epochs) {
  constexpr std::size_t kMost = 10;
  const std::size_t count = std::min(kMost, epochs.size());
  std::vector<EpochEnd> chosen;
  for (std::size_t k = 0; k < count; ++k) {
    chosen.push_back(epochs[(k + 1) * epochs.size() / count - 1]);
  }
  return chosen;
}

// The loss of every recorded sample at its last visit.
class LastLosses {
 public:
  explicit LastLosses(std::size_t count)
      : losses_(count, std::numeric_limits<float>::quiet_NaN()) {}

  void observe(const RecordedStep& step) {
    for (std::size_t k = 0; k < step.places.size(); ++k) losses_[step.places[k]] = step.losses[k];
  }
  const std::vector<float>& losses() const { return losses_; }

 private:
  std::vector<float> losses_;
};

Agreement agreement(const std::vector<float>& scores, const std::vector<float>& truth) {
  return {.spearman = analysis::spearman(scores, truth),
          .pearson = analysis::pearson(scores, truth),
          .top_overlap = analysis::top_overlap(scores, truth, kTopShare),
          .num_scored = static_cast<std::size_t>(std::count_if(
              scores.begin(), scores.end(), [](float score) { return !std::isnan(score); }))};
}

struct ReplayedScore {
  ScoreReplay replay;
  ScoreFidelity fidelity;
};

ReplayedScore make_replayed_score(const Spec& score, const Recording& recording) {
  ScoreReplay replay(score, recording);
  ScoreFidelity fidelity{.score = replay.scorer().spec(), .sees = replay.sees()};
  return {std::move(replay), std::move(fidelity)};
}

// What the scores are compared with, in the order of the steps.
std::vector<TrueLosses> find_truths(const Recording& recording, const RecordedVisits& visits,
                                    bool& is_measured) {
  std::vector<TrueLosses> truths = recording.true_losses();
  // Measured after steps that were lost with the process: they will be made again.
  std::erase_if(truths,
                [&](const TrueLosses& truth) { return truth.num_steps > visits.num_steps; });
  is_measured = !truths.empty();
  const bool knows_own =
      std::any_of(visits.visits.begin(), visits.visits.end(), [](const auto& of) {
        return std::any_of(of.begin(), of.end(), [](const analysis::Visit& visit) {
          return std::isfinite(visit.sample_loss);
        });
      });
  if (is_measured || !knows_own) return truths;
  for (const EpochEnd& end : spread(visits.epochs)) {
    truths.push_back({.epoch = end.epoch, .num_steps = end.num_steps, .losses = {}});
  }
  return truths;
}

}  // namespace

Fidelity measure_fidelity(const Recording& recording, const RecordedVisits& visits,
                          const Spec& checked) {
  Fidelity result;
  const std::vector<TrueLosses> truths = find_truths(recording, visits, result.is_measured);
  for (const TrueLosses& truth : truths) result.epochs.push_back(truth.epoch);
  std::vector<ReplayedScore> all;
  for (const ScorerInfo& info : registered_scorers()) {
    // A recording cannot show what was measured before it began.
    if (info.is_given) continue;
    const Spec by_gradient = gradient_score(recording);
    const bool is_gradient = info.name == by_gradient.name;
    all.push_back(
        make_replayed_score(is_gradient ? by_gradient : Spec{std::string(info.name)}, recording));
  }
  const std::size_t num_registered = all.size();
  for (const double alpha : analyzed_alphas()) {
    all.push_back(make_replayed_score({"batch-loss", {{"alpha", alpha}}}, recording));
  }
  ScoreReplay checked_replay(checked, recording);
  LastLosses last(recording.samples().size());

  std::size_t next = 0;
  const auto compare_at = [&](std::uint64_t num_steps) {
    for (; next < truths.size() && truths[next].num_steps == num_steps; ++next) {
      const auto& truth = result.is_measured ? truths[next].losses : last.losses();
      for (ReplayedScore& one : all) {
        one.fidelity.epochs.push_back(agreement(one.replay.recorded_scores(), truth));
      }
    }
  };
  compare_at(0);
  recording.read([&](const RecordedStep& step) {
    for (ReplayedScore& one : all) one.replay.observe(step);
    checked_replay.observe(step);
    last.observe(step);
    compare_at(step.step + 1);
  });
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].replay.num_without_norms() == visits.num_steps && visits.num_steps > 0) continue;
    (k < num_registered ? result.scores : result.alphas).push_back(std::move(all[k].fidelity));
  }
  result.final_scores = checked_replay.recorded_scores();
  return result;
}

}  // namespace tamis::program
