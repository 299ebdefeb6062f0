#include "tamis/method.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "core/state/state_fields.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis {

namespace {

using detail::concat;

constexpr std::string_view kInitialScore = "initial_score";
constexpr std::string_view kFirstBatch = "first-batch-loss";
constexpr std::string_view kDelta = "delta";
constexpr std::string_view kHomogeneous = "homogeneous";
constexpr std::string_view kMinPerClass = "min_per_class";
constexpr std::string_view kTargetPrune = "target_prune";

// NAME or SCORE+POLICY as a pair of names.
std::pair<std::string, std::string> find_parts(std::string_view name) {
  if (const std::size_t plus = name.find('+'); plus != std::string_view::npos) {
    return {std::string(find_scorer(name.substr(0, plus)).name),
            std::string(find_policy(name.substr(plus + 1)).name)};
  }
  const MethodInfo& method = find_method(name);
  return {std::string(method.score), std::string(method.policy)};
}

bool has_option(const std::vector<OptionInfo>& options, std::string_view name) {
  return std::any_of(options.begin(), options.end(),
                     [&](const OptionInfo& option) { return option.name == name; });
}

bool is_run_option(std::string_view option) {
  return option == kDelta || option == kHomogeneous || option == kMinPerClass ||
         option == kTargetPrune;
}

// The wanted options of one part of a method, each from the strongest source that has it.
OptionMap options_of(const std::string& part, const MethodOptions& options,
                     const OptionMap& written,
                     const std::function<bool(std::string_view)>& is_wanted) {
  OptionMap result;
  const auto take = [&](const OptionMap& source) {
    for (const auto& [name, value] : source) {
      if (is_wanted(name)) result[name] = value;
    }
  };
  take(options.common);
  if (const auto own = options.by_name.find(part); own != options.by_name.end()) take(own->second);
  take(written);
  return result;
}

// What the options say about the run.
class RunOptions {
 public:
  RunOptions(std::string policy, const MethodOptions& options, const OptionMap& written)
      : policy_(std::move(policy)), values_(options_of(policy_, options, written, is_run_option)) {}

  std::optional<double> share(std::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    detail::require(found->second >= 0.0 && found->second <= 1.0, policy_, name, "in [0, 1]",
                    found->second);
    return found->second;
  }
  bool flag(std::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return false;
    detail::require(found->second == 0.0 || found->second == 1.0, policy_, name, "0 or 1",
                    found->second);
    return found->second == 1.0;
  }

 private:
  std::string policy_;
  OptionMap values_;
};

bool knows(const Method& method, std::string_view option) {
  if (option == kTargetPrune) return method.target_prune.has_value();
  return is_run_option(option) || method.score.options.contains(option) ||
         method.policy.options.contains(option);
}

}  // namespace

Spec parse_spec(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  Spec spec{std::string(text.substr(0, colon))};
  std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw std::invalid_argument(
          concat("options of ", spec.name, " must be name=value, got ", item));
    }
    const std::string name = option_name(item.substr(0, equals));
    spec.options[name] = parse_option_value(name, item.substr(equals + 1));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return spec;
}

std::string to_text(const Spec& spec) {
  std::string text = spec.name;
  for (const auto& [name, value] : spec.options) {
    text += concat(text.size() == spec.name.size() ? ":" : ",", name, "=",
                   format_option_value(name, value));
  }
  return text;
}

double parse_option_value(std::string_view option, std::string_view text) {
  const bool is_initial_score = option_name(option) == kInitialScore;
  if (is_initial_score) {
    if (text == "zero") return 0.0;
    if (text == kFirstBatch) return kFirstBatchLoss;
  }
  const std::string_view digits = text.substr(text.starts_with('+') ? 1 : 0);
  double value = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value)) {
    throw std::invalid_argument(concat(option, " must be ",
                                       is_initial_score ? "zero, first-batch-loss or " : "",
                                       "a number, got ", text));
  }
  return value;
}

std::string format_option_value(std::string_view option, double value) {
  if (option == kInitialScore && std::isnan(value)) return std::string(kFirstBatch);
  return detail::to_text(value);
}

std::string option_flag(std::string_view option) {
  if (option == kInitialScore) return "--init";
  std::string flag = concat("--", option);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string option_name(std::string_view flag) {
  if (flag.starts_with("--")) flag.remove_prefix(2);
  if (flag == "init") return std::string(kInitialScore);
  std::string name(flag);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool operator==(const Method& a, const Method& b) {
  // The initial score is NaN where it is the first batch's loss, and NaN is not equal to itself.
  const auto same = [](const Spec& x, const Spec& y) {
    return x.name == y.name && std::equal(x.options.begin(), x.options.end(), y.options.begin(),
                                          y.options.end(), [](const auto& p, const auto& q) {
                                            return p.first == q.first &&
                                                   (p.second == q.second ||
                                                    (std::isnan(p.second) && std::isnan(q.second)));
                                          });
  };
  return a.name == b.name && a.delta == b.delta && a.homogeneous == b.homogeneous &&
         a.min_per_class == b.min_per_class && a.target_prune == b.target_prune &&
         same(a.score, b.score) && same(a.policy, b.policy);
}

Method parse_method(std::string_view text, const MethodOptions& options) {
  const auto [name, written] = parse_spec(text);
  const auto [score, policy] = find_parts(name);
  const auto& score_options = find_scorer(score).options;
  const auto& policy_options = find_policy(policy).options;
  const auto of_score = [&](std::string_view option) { return has_option(score_options, option); };
  const auto of_policy = [&](std::string_view option) {
    return has_option(policy_options, option);
  };
  for (const auto& [option, value] : written) {
    if (!is_run_option(option) && !of_score(option) && !of_policy(option)) {
      throw std::invalid_argument(concat("method ", name, " has no option ", option,
                                         " (its score is ", score, ", its policy ", policy, ")"));
    }
  }
  Method method{
      .name = std::string(text),
      .score = {score, options_of(score, options, written, of_score)},
      .policy = {policy, options_of(policy, options, written, of_policy)},
  };
  // Making them checks the ranges and fills in the defaults.
  method.score = make_scorer(method.score, 1)->spec();
  const auto made = make_policy(method.policy);
  method.policy = made->spec();
  const RunOptions run(policy, options, written);
  method.delta = run.share(kDelta).value_or(made->default_delta());
  method.homogeneous = run.flag(kHomogeneous);
  method.min_per_class = run.share(kMinPerClass).value_or(0.0);
  if (made->max_prune_ratio() > 0.0 || written.contains(kTargetPrune)) {
    method.target_prune = run.share(kTargetPrune);
  }
  return method;
}

void check_used(const MethodOptions& options, std::span<const Method> methods) {
  for (const auto& [option, value] : options.common) {
    const auto& name = option;
    if (std::any_of(methods.begin(), methods.end(),
                    [&](const Method& method) { return knows(method, name); })) {
      continue;
    }
    std::string names;
    for (const Method& method : methods) names += (names.empty() ? "" : ", ") + method.name;
    throw std::invalid_argument(concat(option_flag(option), " is not an option of ", names));
  }
}

void check_reachable(const Method& method, std::uint64_t num_epochs) {
  const Pruner pruner({.num_samples = 1,
                       .num_epochs = num_epochs,
                       .policy = method.policy,
                       .delta = method.delta,
                       .target_prune = method.target_prune});
}

}  // namespace tamis
