#include "training/trainer/methods.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"
#include "tamis/scores/batch_loss.h"

namespace tamis::training {

namespace {

using detail::concat;

constexpr std::string_view kInitialScore = "initial_score";
constexpr std::string_view kFirstBatch = "first-batch-loss";
constexpr std::string_view kDelta = "delta";
constexpr std::string_view kHomogeneous = "homogeneous";
constexpr std::string_view kMinPerClass = "min_per_class";
constexpr std::string_view kTargetPrune = "target_prune";

constexpr std::array<MethodInfo, 14> kMethods = {{
    {"full", "all samples in every epoch; what the others are compared with", "last-batch-loss",
     "none"},
    {"random", "one random subset for the whole run", "last-batch-loss", "random"},
    {"random-dynamic", "a fresh random subset in every epoch", "last-batch-loss", "random-dynamic"},
    {"epsilon-greedy", "the samples with the highest average loss, and some at random",
     "loss-average", "epsilon-greedy"},
    {"ucb", "the samples with the highest upper confidence bound of the loss", "loss-ucb", "ucb"},
    {"infobatch", "InfoBatch on the loss of every sample, as its authors do", "sample-loss",
     "infobatch"},
    {"seta", "SeTa on the loss of every sample, as its authors do", "sample-loss", "seta"},
    {"bls-infobatch", "InfoBatch on the batch loss score: needs the mean loss only", "batch-loss",
     "infobatch"},
    {"bls-seta", "SeTa on the batch loss score: needs the mean loss only", "batch-loss", "seta"},
    {"blr-infobatch", "InfoBatch on losses reconstructed from batch means", "reconstruction",
     "infobatch"},
    {"blr-seta", "SeTa on losses reconstructed from batch means", "reconstruction", "seta"},
    {"trim", "leaves out the highest losses, for wrong labels", "sample-loss", "trim"},
    {"bls-trim", "leaves out the highest batch loss scores, for wrong labels", "batch-loss",
     "trim"},
    {"blr-trim", "leaves out the highest reconstructed losses, for wrong labels", "reconstruction",
     "trim"},
}};

// NAME or SCORE+POLICY as a pair of names.
std::pair<std::string, std::string> find_parts(std::string_view name) {
  if (const std::size_t plus = name.find('+'); plus != std::string_view::npos) {
    return {std::string(find_scorer(name.substr(0, plus)).name),
            std::string(find_policy(name.substr(plus + 1)).name)};
  }
  std::string known;
  for (const MethodInfo& method : kMethods) {
    if (method.name == name) return {std::string(method.score), std::string(method.policy)};
    known += concat(method.name, ", ");
  }
  throw std::invalid_argument(
      concat("method must be one of ", known, "or SCORE+POLICY, got ", name));
}

bool has_option(const std::vector<OptionInfo>& options, std::string_view name) {
  return std::any_of(options.begin(), options.end(),
                     [&](const OptionInfo& option) { return option.name == name; });
}

OptionMap parse_options(std::string_view method, std::string_view text) {
  OptionMap options;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw std::invalid_argument(
          concat("options of method ", method, " must be name=value, got ", item));
    }
    const std::string name = option_name(item.substr(0, equals));
    options[name] = parse_option_value(name, item.substr(equals + 1));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return options;
}

// Options of one part of a method, from the weakest source to the strongest.
OptionMap options_of(const std::string& part, const std::vector<OptionInfo>& known,
                     const MethodOptions& options, const OptionMap& written) {
  OptionMap result;
  const auto take = [&](const OptionMap& source) {
    for (const auto& [name, value] : source) {
      if (has_option(known, name)) result[name] = value;
    }
  };
  take(options.common);
  if (const auto own = options.by_name.find(part); own != options.by_name.end()) {
    take(own->second);
  }
  take(written);
  return result;
}

bool is_run_option(std::string_view option) {
  return option == kDelta || option == kHomogeneous || option == kMinPerClass ||
         option == kTargetPrune;
}

// What the options say about the run, from the strongest source that says it.
class RunOptions {
 public:
  RunOptions(std::string policy, const MethodOptions& options, const OptionMap& written)
      : policy_(std::move(policy)) {
    const auto take = [&](const OptionMap& source) {
      for (const auto& [name, value] : source) {
        if (is_run_option(name)) values_[name] = value;
      }
    };
    take(options.common);
    if (const auto own = options.by_name.find(policy_); own != options.by_name.end()) {
      take(own->second);
    }
    take(written);
  }

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

std::span<const MethodInfo> registered_methods() { return kMethods; }

Method parse_method(std::string_view text, const MethodOptions& options) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const auto [score, policy] = find_parts(name);
  const OptionMap written =
      parse_options(name, colon < text.size() ? text.substr(colon + 1) : std::string_view{});
  const auto& score_options = find_scorer(score).options;
  const auto& policy_options = find_policy(policy).options;
  for (const auto& [option, value] : written) {
    if (!is_run_option(option) && !has_option(score_options, option) &&
        !has_option(policy_options, option)) {
      throw std::invalid_argument(concat("method ", name, " has no option ", option,
                                         " (its score is ", score, ", its policy ", policy, ")"));
    }
  }
  Method method{
      .name = std::string(text),
      .score = {score, options_of(score, score_options, options, written)},
      .policy = {policy, options_of(policy, policy_options, options, written)},
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

bool uses_sample_losses(const Spec& score) {
  // These two also work with the mean of the batch, but are meant for the sample's own loss.
  return score.name == "loss-average" || score.name == "loss-ucb" ||
         make_scorer(score, 1)->needs_sample_losses();
}

double parse_option_value(std::string_view option, std::string_view text) {
  if (option == kInitialScore) {
    if (text == "zero") return 0.0;
    if (text == kFirstBatch) return kFirstBatchLoss;
  }
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number =
      error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
  detail::require(is_number, "method", option,
                  option == kInitialScore ? "zero, first-batch-loss or a number" : "a number",
                  text);
  return value;
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

}  // namespace tamis::training
