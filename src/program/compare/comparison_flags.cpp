#include "program/compare/comparison_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>

#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/shared/signals.h"
#include "program/shared/terminal.h"

namespace tamis::program {

void ComparisonFlags::add(CLI::App& command, const ComparisonWords& words) {
  const auto& [noun, varied, baseline_help, folder] = words;
  add_counts(command, "--seeds", seeds,
             fmt::format("one run per {} and seed (default: 0 1 2)", varied));
  command.add_option("--baseline", baseline, baseline_help)->type_name("NAME");
  command
      .add_option("--reach", reach,
                  "a value of the headline: shows how long each method takes to reach it (0.9: 90 "
                  "% for\nan accuracy)")
      ->type_name("NUMBER");
  add_path(command, "--out", out, fmt::format("folder of the {} (default: {})", noun, folder))
      .type_name("FOLDER");
  add_path(command, "--resume", resume, fmt::format("continue the {} in this folder", noun))
      .type_name("FOLDER");
  command.add_flag(
      "--repeat-disturbed", repeat_disturbed,
      fmt::format("make runs again, twice at most, that got less than {:.0f} % of the processor",
                  100.0 * runs::kLeastProcessorShare));
  command.add_flag("--overwrite", overwrite,
                   fmt::format("replace a {} that is in the folder, with all its runs", noun));
  command.add_flag("--json", json, "print the summary as JSON");
  command.add_flag("--quiet", quiet, "print the table only");
}

void ComparisonFlags::check_resume_alone(const std::string& noun, bool others) const {
  if (others || overwrite || !seeds.empty() || !baseline.empty() || !out.empty() || reach) {
    throw UsageError(
        fmt::format("--resume takes all settings from the {}; only --json, --quiet and "
                    "--repeat-disturbed go with "
                    "it",
                    noun));
  }
}

void add_methods_flag(CLI::App& command, std::vector<std::string>& methods,
                      const std::string& help) {
  command.add_option("--methods", methods, help)->type_name("NAME...");
}

std::string default_baseline(const std::vector<std::string>& methods) {
  const bool has_full = std::find(methods.begin(), methods.end(), "full") != methods.end();
  return has_full || methods.empty() ? "full" : methods.front();
}

namespace {

std::string describe_disturbance(const runs::RunResult& result) {
  if (!result.is_disturbed()) return {};
  return fmt::format("  disturbed: got {:.0f} % of the processor", 100.0 * *result.processor_share);
}

}  // namespace

void print_run(const runs::PlannedRun& planned, bool was_finished) {
  const runs::RunData run = planned.read();
  const runs::RunResult result = runs::summarize_run(run);
  print(fmt::format("{}  {} {}  pruned {:.1f} %  {}{}{}\n", planned.title(), run.headline().title(),
                    runs::MetricFormat(run.headline(), result.value).value(result.value),
                    100.0 * result.pruned_share, runs::format_duration(result.train_seconds),
                    describe_disturbance(result), was_finished ? "  (was done)" : ""));
}

void print_summary(const runs::Comparison& comparison, const ComparisonFlags& flags,
                   const std::string& heading, const runs::Json& more) {
  const runs::Summary summary = comparison.summarize();
  if (flags.json) {
    runs::Json json = runs::to_json(summary);
    json.update(more);
    print(format_json(json));
    return;
  }
  print(fmt::format(
      "{}{}\n\n{}\nresults in {}\n", flags.quiet ? "" : "\n", heading,
      format_summary(summary, has_utf8(), is_terminal(Stream::output) ? terminal_width() : 0),
      comparison.path().string()));
}

void stop_interrupted(const std::string& command, const std::string& folder) {
  print_error(printable(fmt::format(
      "tamis: interrupted and saved; continue with: tamis {} --resume {}\n", command, folder)));
  // The signal may have come to another process.
  throw Interrupted(StopSignals::received() != 0 ? StopSignals::received() : SIGTERM);
}

std::string describe_comparison() {
  return "The same command again, or --resume, continues where it stopped: runs that are done are\n"
         "kept, methods and seeds can be added. Ends with a table of the headline metric, the\n"
         "difference to the baseline with its 95 % interval, pruned share, time and overhead.\n";
}

std::string default_folder(const std::vector<std::string>& parts) {
  return fmt::format("runs/{}", fmt::join(parts, "-"));
}

}  // namespace tamis::program
