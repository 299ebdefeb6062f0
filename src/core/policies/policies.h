// The built-in policies. The registry gives complete options, which keep its rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/rounding.h"
#include "tamis/policy.h"

namespace tamis::detail {

// The full data set in every epoch; the baseline, through the same code path.
std::unique_ptr<Policy> make_none(const OptionMap& options);

// One uniform subset of floor((1 - prune_ratio) N) samples for the whole run: what every score has
// to beat. Dynamic: a fresh subset in every epoch.
std::unique_ptr<Policy> make_random(const OptionMap& options);
std::unique_ptr<Policy> make_random_dynamic(const OptionMap& options);

// Of the samples below the mean, floor((1 - prune_ratio) n) stay, chosen uniformly, with weight
// 1 / (1 - prune_ratio), so that the expected gradient is that of the full data. All others stay
// with weight 1.
std::unique_ptr<Policy> make_infobatch(const OptionMap& options);

// Keeps floor((1 - prune_ratio) N) samples at random, clusters their scores into groups and uses
// the groups of the window (groups * window_scale, rounded half to even); the window moves by one
// group per epoch and starts over at the end. Epoch 0 uses all groups. Weights stay 1; annealing
// epochs use the random subset. Throws std::invalid_argument if the window is empty.
std::unique_ptr<Policy> make_seta(const OptionMap& options);

// k = floor((1 - prune_ratio) N) samples: the k - floor(epsilon k) highest scored and floor(epsilon
// k) chosen uniformly from the rest. Unscored samples come before all others.
std::unique_ptr<Policy> make_epsilon_greedy(const OptionMap& options);

// The floor((1 - prune_ratio) N) highest scored samples. Unscored samples come before all others.
std::unique_ptr<Policy> make_ucb(const OptionMap& options);

// From epoch warmup_epochs on, the floor(prune_ratio N) highest scored samples are left out (fewer
// if fewer are scored). Weights stay 1. For noisy labels, where the hardest samples are the wrong
// ones; the opposite of InfoBatch.
std::unique_ptr<Policy> make_trim(const OptionMap& options);

// The floor((1 - prune_ratio) N) highest scored samples, the same in every epoch if the scores stay
// the same; all samples as long as none is scored. For scores that are given before the training.
std::unique_ptr<Policy> make_subset(const OptionMap& options);

// What they share: name and options, and how much of the data stays.
class BuiltInPolicy : public Policy {
 public:
  BuiltInPolicy(std::string name, OptionMap options) : spec_{std::move(name), std::move(options)} {}

  Spec spec() const override { return spec_; }

 protected:
  double option(std::string_view name) const { return spec_.options.find(name)->second; }
  double prune_ratio(const PolicyInput& input) const {
    return input.prune_ratio ? *input.prune_ratio : option("prune_ratio");
  }
  std::uint64_t num_kept(const PolicyInput& input) const {
    return floor_share(1.0 - prune_ratio(input), input.scores.num_samples());
  }

 private:
  Spec spec_;
};

}  // namespace tamis::detail
