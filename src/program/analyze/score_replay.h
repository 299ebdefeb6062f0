// Scores of a recorded run, made again step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/recording.h"
#include "tamis/scorer.h"
#include "tamis/types.h"

namespace tamis::program {

// What a score is made from, for people: "batch losses", "per-sample losses" or "output gradients".
std::string_view to_text(LossKind kind);

// Throws std::runtime_error if the machine has not the memory for this much per sample. How many
// samples a data set has, a recording only says: it may hold the losses of a few.
void require_memory_for(std::size_t num_samples, double bytes_per_sample,
                        const std::string& source);

// The score of output gradients that takes the norms which the recording has.
Spec gradient_score(const Recording& recording);

// One score, fed with the steps of a recording as the run fed its own. A score of per-sample losses
// sees those of the recorded samples and nothing else, since no others are known; a score of output
// gradients sees the steps whose outputs were watched, if their norms are of the order that it
// takes.
class ScoreReplay {
 public:
  ScoreReplay(const Spec& score, const Recording& recording);

  void observe(const RecordedStep& step);

  const Scorer& scorer() const { return *scorer_; }
  // What the score sees of a step.
  LossKind sees() const {
    return takes_sample_losses(scorer_->needs()) ? LossKind::sample_losses : scorer_->needs();
  }
  std::uint64_t num_observations() const { return num_observations_; }
  std::uint64_t num_skipped() const { return num_skipped_; }
  // Steps that the score could not see, because its norms were not recorded.
  std::uint64_t num_without_norms() const { return num_without_norms_; }
  // Of all samples, NaN where unscored.
  std::vector<float> scores() const;
  // Of the recorded samples, in the order of samples().
  std::vector<float> recorded_scores() const;

 private:
  void apply(const Observation& observation);
  void observe_losses(const RecordedStep& step);

  std::unique_ptr<Scorer> scorer_;
  bool has_its_norms_;
  std::span<const std::uint32_t> samples_;
  std::uint64_t num_observations_ = 0;
  std::uint64_t num_skipped_ = 0;
  std::uint64_t num_without_norms_ = 0;
  std::vector<std::uint32_t> indices_;  // scratch of observe()
  std::vector<float> losses_;
};

}  // namespace tamis::program
