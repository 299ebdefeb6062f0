// Methods: a score and a policy under the one name that papers use, such as bls-infobatch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/types.h"

namespace tamis::training {

struct MethodInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view score;
  std::string_view policy;
};

// All of them, in the order in which help texts list them.
std::span<const MethodInfo> registered_methods();

// What a run prunes with; every option filled in.
struct Method {
  std::string name;  // as the user wrote it: "full", "bls-seta:alpha=0.5", "last-batch-loss+seta"
  Spec score;
  Spec policy;
  double delta = 1.0;  // share of the epochs that are pruned
  // See PrunerOptions.
  bool homogeneous = false;  // in batches of the run's batch size
  double min_per_class = 0.0;
  std::optional<double> target_prune = std::nullopt;

  friend bool operator==(const Method&, const Method&);
};

// Options of a score or of a policy by option name. Those of the run, which are delta, homogeneous
// (0 or 1), min_per_class and target_prune, count as options of the policy; a common target_prune
// is not for policies whose ratio cannot change.
struct MethodOptions {
  // For every score and policy that has such an option.
  OptionMap common = {};
  // For the score or the policy of that name only; these win over the common ones.
  std::map<std::string, OptionMap, std::less<>> by_name = {};
};

// Reads NAME, SCORE+POLICY, or one of them followed by ":option=value,option=value", whose options
// win over `options`. Option names may have - for _, and init stands for initial_score. Throws
// std::invalid_argument for names and options that do not exist and for values out of range.
Method parse_method(std::string_view text, const MethodOptions& options = {});

// Throws std::invalid_argument if a common option belongs to none of the methods.
void check_used(const MethodOptions& options, std::span<const Method> methods);

// Throws std::invalid_argument if no run of so many epochs can use the method: its target_prune is
// out of reach.
void check_reachable(const Method& method, std::uint64_t num_epochs);

// True if the score is made from the loss of every sample, not from the mean of the batch.
bool uses_sample_losses(const Spec& score);

// Reads the value of an option as people write it: a number, or zero or first-batch-loss for
// initial_score. Throws std::invalid_argument.
double parse_option_value(std::string_view option, std::string_view text);

// "--prune-ratio" for prune_ratio and "--init" for initial_score; and the way back, with or without
// the dashes.
std::string option_flag(std::string_view option);
std::string option_name(std::string_view flag);

}  // namespace tamis::training
