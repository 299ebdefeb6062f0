#include "training/trainer/budget.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/check.h"

namespace tamis::training {

namespace {

constexpr std::string_view kTargetPrune = "target_prune";

std::optional<double> find_option(const OptionMap& options, std::string_view name) {
  const auto found = options.find(name);
  return found == options.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

Method parse_trained_method(std::string_view text, const MethodOptions& options) {
  const std::string_view name = text.substr(0, text.find(':'));
  if (name != kFewerEpochs) return parse_method(text, options);
  const OptionMap written = parse_spec(text).options;
  for (const auto& [option, value] : written) {
    detail::require(option == kTargetPrune, name, "option", "target_prune, it has no other",
                    option);
  }
  auto share = find_option(written, kTargetPrune);
  if (!share) share = find_option(options.common, kTargetPrune);
  if (!share) {
    throw std::invalid_argument(
        "fewer-epochs: target_prune must say how much of the run is left out, got nothing; give "
        "--target-prune 0.3, or fewer-epochs:target-prune=0.3");
  }
  detail::require(*share >= 0.0 && *share < 1.0, name, kTargetPrune, "in [0, 1)", *share);
  Method method = parse_method("full");
  method.name = std::string(text);
  method.target_prune = share;
  return method;
}

bool is_fewer_epochs(const Method& method) {
  return method.name.substr(0, method.name.find(':')) == kFewerEpochs;
}

void check_budget(const Method& method, std::uint64_t num_epochs) {
  if (!is_fewer_epochs(method)) check_reachable(method, num_epochs);
}

void choose_method(RunConfig& config, Method method) {
  config.method = std::move(method);
  if (!is_fewer_epochs(config.method)) return;
  config.full_epochs = config.training.epochs;
  const double left =
      (1.0 - config.method.target_prune.value()) * static_cast<double>(config.full_epochs);
  config.training.epochs = static_cast<std::uint64_t>(std::max(1.0, std::round(left)));
}

std::vector<std::string> budget_methods() {
  return {"full", std::string(kFewerEpochs), "random-dynamic", "random-dynamic:delta=0.875"};
}

}  // namespace tamis::training
