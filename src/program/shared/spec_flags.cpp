#include "program/shared/spec_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>
#include <vector>

#include "program/shared/arguments.h"
#include "tamis/method.h"
#include "tamis/registry.h"

namespace tamis::program {

namespace {

// The one option that is not only a number.
constexpr std::string_view kInitialScore = "initial_score";

const OptionInfo* find_option(const std::vector<OptionInfo>& options, std::string_view name) {
  for (const OptionInfo& option : options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

// What an option means, to a reader of the command line.
std::string meaning(const OptionInfo& option) {
  return fmt::format("{}; {}", option.help, option.rule.text);
}

struct FlagHelp {
  std::string_view option;
  // Who has the option, by what it means to them.
  std::vector<std::pair<std::string, std::string>> owners_by_meaning = {};

  std::string text() const {
    std::string lines;
    for (const auto& [what, owners] : owners_by_meaning) {
      lines += fmt::format("{}{}\n  ({})", lines.empty() ? "" : "\n", what, owners);
    }
    return lines;
  }
};

// One for every option of all registered scores or policies.
template <typename Info>
std::vector<FlagHelp> flag_helps(std::span<const Info> all) {
  std::vector<FlagHelp> flags;
  for (const Info& info : all) {
    for (const OptionInfo& option : info.options) {
      auto flag = std::find_if(flags.begin(), flags.end(),
                               [&](const FlagHelp& f) { return f.option == option.name; });
      if (flag == flags.end()) flag = flags.insert(flag, {.option = option.name});
      auto& owners = flag->owners_by_meaning;
      const std::string what = meaning(option);
      const auto same = std::find_if(owners.begin(), owners.end(),
                                     [&](const auto& entry) { return entry.first == what; });
      if (same == owners.end()) {
        owners.emplace_back(what, info.name);
      } else {
        same->second += fmt::format(", {}", info.name);
      }
    }
  }
  return flags;
}

// Defaults that are not in the registry's list of options.
std::string further_defaults(const ScorerInfo& /*info*/) { return ""; }
std::string further_defaults(const PolicyInfo& info) {
  return fmt::format(" --delta {}", make_policy({std::string(info.name)})->default_delta());
}

template <typename Info>
std::string describe(std::string_view title, std::span<const Info> all) {
  std::string text = fmt::format("{}, with their defaults:\n", title);
  for (const Info& info : all) {
    text += fmt::format("  {:<16} {}\n", info.name, info.summary);
    std::string defaults;
    for (const OptionInfo& option : info.options) {
      defaults += fmt::format(" {} {}", option_flag(option.name),
                              format_option_value(option.name, option.default_value));
    }
    defaults += further_defaults(info);
    if (!defaults.empty()) text += fmt::format("  {:<16}  {}\n", "", defaults);
  }
  return text;
}

// The flag of a name, which is required where there is no default.
void describe_name(CLI::Option* flag, const std::string& default_name) {
  flag->type_name("NAME")->required(default_name.empty());
  if (!default_name.empty()) flag->capture_default_str();
}

template <typename Info>
std::string owner_text(std::string_view kind, const Info& info) {
  std::string flags;
  for (const OptionInfo& option : info.options) {
    flags += fmt::format("{}{}", flags.empty() ? "" : ", ", option_flag(option.name));
  }
  return fmt::format("{} {} (which has {})", kind, info.name, flags.empty() ? "none" : flags);
}

}  // namespace

void SpecFlags::add_flag(CLI::App& command, std::string_view option, const std::string& help,
                         const std::string& group) {
  const std::string flag = option_flag(option);
  // A score and a policy may share the name of an option; then one flag serves both.
  if (command.get_option_no_throw(flag) != nullptr) return;
  add_text(command, flag, option == kInitialScore ? "zero|first-batch-loss|NUMBER" : "NUMBER", help,
           [this, name = std::string(option)](const std::string& text) { given_[name] = text; })
      .group(group);
}

void SpecFlags::add_score(CLI::App& command, std::string_view default_name) {
  score_ = default_name;
  describe_name(command.add_option("--score", *score_, "what turns losses into scores; see below"),
                *score_);
  for (const FlagHelp& flag : flag_helps(registered_scorers())) {
    add_flag(command, flag.option, flag.text(), "Options of the score");
  }
}

void SpecFlags::add_policy(CLI::App& command, std::string_view default_name) {
  policy_ = default_name;
  describe_name(
      command.add_option("--policy", *policy_, "what chooses the samples of an epoch; see below"),
      *policy_);
  for (const FlagHelp& flag : flag_helps(registered_policies())) {
    add_flag(command, flag.option, flag.text(), "Options of the policy");
  }
}

SpecChoice SpecFlags::choose() const {
  return as_usage([this] {
    const ScorerInfo* const score = score_ ? &find_scorer(*score_) : nullptr;
    const PolicyInfo* const policy = policy_ ? &find_policy(*policy_) : nullptr;
    SpecChoice choice;
    if (score != nullptr) choice.score = Spec{*score_};
    if (policy != nullptr) choice.policy = Spec{*policy_};
    for (const auto& [option, text] : given_) {
      const bool in_score = score != nullptr && find_option(score->options, option) != nullptr;
      const bool in_policy = policy != nullptr && find_option(policy->options, option) != nullptr;
      if (!in_score && !in_policy) {
        throw UsageError(fmt::format("{} is not an option of {}{}{}", option_flag(option),
                                     score != nullptr ? owner_text("score", *score) : "",
                                     score != nullptr && policy != nullptr ? " or " : "",
                                     policy != nullptr ? owner_text("policy", *policy) : ""));
      }
      const double value = parse_option_value(option_flag(option), text);
      if (in_score) choice.score->options[option] = value;
      if (in_policy) choice.policy->options[option] = value;
    }
    // Checks the ranges and fills in the defaults.
    if (choice.score) choice.score = make_scorer(*choice.score, 1)->spec();
    if (choice.policy) choice.policy = make_policy(*choice.policy)->spec();
    return choice;
  });
}

std::string describe_scores() { return describe("Scores", registered_scorers()); }

std::string describe_policies() { return describe("Policies", registered_policies()); }

}  // namespace tamis::program
