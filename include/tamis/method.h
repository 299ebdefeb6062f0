// Methods and specs as text: "bls-seta:alpha=0.8,groups=7". One spelling for program, files,
// Python.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tamis/types.h"

namespace tamis {

// "name" or "name:option=value,option=value". Option names may have - for _, and init stands for
// initial_score, whose value may be zero or first-batch-loss. Whether the score or policy and its
// options exist is for make_scorer and make_policy to say. Throws std::invalid_argument for text
// that cannot be read.
Spec parse_spec(std::string_view text);
// What parse_spec reads back to an equal spec.
std::string to_text(const Spec& spec);

// The value of an option: a finite number, or a word for initial_score. `option` is a name or a
// flag; the message of the std::invalid_argument repeats it.
double parse_option_value(std::string_view option, std::string_view text);
std::string format_option_value(std::string_view option, double value);

// "--prune-ratio" for prune_ratio and "--init" for initial_score; and the way back, with or without
// the dashes.
std::string option_flag(std::string_view option);
std::string option_name(std::string_view flag);

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

// Reads NAME (of a registered method) or SCORE+POLICY, either with options as in parse_spec, which
// win over `options`. Throws std::invalid_argument for names and options that do not exist and for
// values out of range.
Method parse_method(std::string_view text, const MethodOptions& options = {});

// Throws std::invalid_argument if a common option belongs to none of the methods.
void check_used(const MethodOptions& options, std::span<const Method> methods);

// Throws std::invalid_argument if the method's target_prune is out of reach in a run of
// `num_epochs`.
void check_reachable(const Method& method, std::uint64_t num_epochs);

}  // namespace tamis
