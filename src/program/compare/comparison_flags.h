// What `tamis compare` and `tamis sweep` share: flags, and how the result is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runs/comparison.h"

namespace CLI {
class App;
}

namespace tamis::program {

// The words of a command's help that differ.
struct ComparisonWords {
  std::string noun;            // "comparison"
  std::string varied;          // what there is one run of per seed: "method"
  std::string baseline;        // help of --baseline
  std::string default_folder;  // "runs/compare-DATA-MODEL"
};

struct ComparisonFlags {
  std::vector<std::uint64_t> seeds;
  std::string baseline;  // empty: not given
  std::string out;
  std::string resume;
  std::optional<double> reach;  // value of the headline
  bool repeat_disturbed = false;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;

  void add(CLI::App& command, const ComparisonWords& words);
  // Throws UsageError if --resume comes with any of these, or with `others`.
  void check_resume_alone(const std::string& noun, bool others) const;

  runs::RunFolder::Existing existing() const {
    return overwrite ? runs::RunFolder::Existing::overwrite : runs::RunFolder::Existing::refuse;
  }
};

void add_methods_flag(CLI::App& command, std::vector<std::string>& methods,
                      const std::string& help);

// The method called full if there is one, else the first.
std::string default_baseline(const std::vector<std::string>& methods);

// A plain line for a run that has ended.
void print_run(const runs::PlannedRun& run, bool was_finished);

// The table or, with --json, the summary. `heading` is a line above the table, `more` is added to
// the JSON.
void print_summary(const runs::Comparison& comparison, const ComparisonFlags& flags,
                   const std::string& heading, const runs::Json& more = runs::Json::object());

// Says how to go on, on standard error, and throws Interrupted.
[[noreturn]] void stop_interrupted(const std::string& command, const std::string& folder);

// For the end of a help text.
std::string describe_comparison();

// A folder name below runs/ for people who do not choose one.
std::string default_folder(const std::vector<std::string>& parts);

}  // namespace tamis::program
