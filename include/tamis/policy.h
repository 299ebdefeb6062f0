// Policy: turns scores into the samples of the next epoch. It never knows where a score came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tamis/selection.h"
#include "tamis/types.h"

namespace tamis {

class Communicator;

// The highest prune_ratio that target_prune sets, for policies that would take any below 1.
inline constexpr double kMaxAdjustedRatio = 0.99;

// All that a selection may depend on.
struct PolicyInput {
  std::span<const float> scores;  // one per sample, kUnscored where there is none
  std::uint64_t epoch = 0;        // from 0
  std::uint64_t seed = 0;
  // Instead of the policy's own prune_ratio, in [0, Policy::max_prune_ratio()].
  std::optional<double> prune_ratio = std::nullopt;
};

// What a rank knows that keeps a part of the scores only.
struct PartInput {
  PolicyInput local;              // its scores are those of samples [first, first + size)
  std::uint64_t first = 0;        // number of the part's first sample in the whole data set
  std::uint64_t num_samples = 0;  // of the whole data set
  Communicator* communicator = nullptr;
};

// Stateless and thread-safe: the same input gives the same selection. An unscored sample is never
// left out because of its score and never counts in a mean or a group.
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

  // This rank's part of the same for scores that are spread over ranks: every rank calls it, and
  // the parts together follow the policy's rule for all scores. Which samples that are does not
  // depend on the number of ranks. The default for select throws std::invalid_argument.
  virtual Selection select_part(const PartInput& input) const;
  virtual Selection anneal_part(const PartInput& input) const;
};

}  // namespace tamis
