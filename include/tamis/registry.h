// The lists of scores, policies and methods that the program, Python and the tests read.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tamis/policy.h"
#include "tamis/scorer.h"
#include "tamis/types.h"

namespace tamis {

// As initial_score of batch-loss: every sample starts at the loss of the first observed batch.
inline constexpr double kFirstBatchLoss = std::numeric_limits<double>::quiet_NaN();

// What the value of an option must be, as error messages and help texts say it.
struct OptionRule {
  std::string_view text;  // "in [0, 1)"
  bool (*accepts)(double value);
};

// One option of a score or policy.
struct OptionInfo {
  std::string_view name;
  double default_value = 0.0;
  OptionRule rule;
  std::string_view help;
};

struct ScorerInfo {
  std::string_view name;
  std::string_view summary;
  std::vector<OptionInfo> options;
  // Takes a value for every option that keeps its rule; make_scorer sees to it.
  std::unique_ptr<Scorer> (*make)(std::size_t num_samples, const OptionMap& options);
  // True for scores that are measured before the training and do not follow from its losses.
  bool is_given = false;
};

struct PolicyInfo {
  std::string_view name;
  std::string_view summary;
  // The score that the policy's own authors feed it; used when a user names only the policy.
  std::string_view default_score;
  std::vector<OptionInfo> options;
  std::unique_ptr<Policy> (*make)(const OptionMap& options);  // as above, see make_policy
};

// A score and a policy under the one name that papers use, such as bls-infobatch. See method.h.
struct MethodInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view score;
  std::string_view policy;
  std::string_view paper;  // who published it; empty if nobody did
};

// All of them, in the order in which help texts list them.
std::span<const ScorerInfo> registered_scorers();
std::span<const PolicyInfo> registered_policies();
std::span<const MethodInfo> registered_methods();

// Throws std::invalid_argument, naming what exists, if there is no such name.
const ScorerInfo& find_scorer(std::string_view name);
const PolicyInfo& find_policy(std::string_view name);
const MethodInfo& find_method(std::string_view name);

// Throws std::invalid_argument for an unknown name, an unknown option or a value out of range.
std::unique_ptr<Scorer> make_scorer(const Spec& spec, std::size_t num_samples);
std::unique_ptr<Policy> make_policy(const Spec& spec);

}  // namespace tamis
