// Policy: turns scores into the samples of the next epoch. It never knows where a score came from.
#pragma once

#include <cstdint>
#include <optional>

#include "tamis/score_view.h"
#include "tamis/selection.h"
#include "tamis/types.h"

namespace tamis {

// The highest prune_ratio that target_prune sets, for policies that would take any below 1.
inline constexpr double kMaxAdjustedRatio = 0.99;

// All that a selection may depend on.
struct PolicyInput {
  const ScoreView& scores;
  std::uint64_t epoch = 0;  // from 0
  std::uint64_t seed = 0;
  // Instead of the policy's own prune_ratio, in [0, Policy::max_prune_ratio()].
  std::optional<double> prune_ratio = std::nullopt;

  // For the random choices of this selection, numbered from 0.
  Draw draw(std::uint64_t number = 0) const { return {seed, epoch, number}; }
};

// Stateless and thread-safe: the same input gives the same selection. An unscored sample is never
// left out because of its score and never counts in a mean or a group. A selection has one bit per
// sample of the view; in the sharded layout the selections of all ranks together follow the rule.
class Policy {
 public:
  virtual ~Policy() = default;

  // Name and options, complete, as the registry understands them.
  virtual Spec spec() const = 0;

  // Share of the epochs that are pruned when the user does not say (see Schedule).
  virtual double default_delta() const { return 1.0; }

  // True if select() reads the scores.
  virtual bool uses_scores() const { return true; }

  // The samples of a pruned epoch.
  virtual Selection select(const PolicyInput& input) const = 0;

  // The samples of an annealing epoch: all of them, unless the policy says otherwise.
  virtual Selection anneal(const PolicyInput& input) const;
  // True if anneal() leaves samples out as well.
  virtual bool prunes_when_annealing() const { return false; }

  // How far PolicyInput::prune_ratio may go; 0 if the policy does not read it.
  virtual double max_prune_ratio() const { return 0.0; }
};

}  // namespace tamis
