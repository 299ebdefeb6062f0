// The flags of scores and policies, generated from the registry: a new option appears by itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/types.h"

namespace CLI {
class App;
}

namespace tamis::program {

// What the user chose, complete and in range.
struct SpecChoice {
  std::optional<Spec> score;
  std::optional<Spec> policy;
};

// Adds --score and --policy with a flag for every option that one of them has: --prune-ratio for
// prune_ratio, --init for initial_score. Must outlive the parsing.
class SpecFlags {
 public:
  // An empty default makes the flag required.
  void add_score(CLI::App& command, std::string_view default_name = "");
  void add_policy(CLI::App& command, std::string_view default_name = "");

  // After parsing. Throws UsageError for a name that does not exist, for a flag that neither the
  // score nor the policy has, and for a value out of range.
  SpecChoice choose() const;

 private:
  void add_flag(CLI::App& command, std::string_view option, const std::string& help,
                const std::string& group);

  std::optional<std::string> score_;
  std::optional<std::string> policy_;
  std::map<std::string, std::string> given_;  // text of the value by option name
};

// Registered names with their summaries and options, for the end of a help text.
std::string describe_scores();
std::string describe_policies();

}  // namespace tamis::program
