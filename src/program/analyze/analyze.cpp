// tamis analyze: what the batch losses of a recorded run tell about its samples.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "program/analyze/analyzed_run.h"
#include "program/commands.h"
#include "program/shared/arguments.h"
#include "program/shared/output.h"

namespace tamis::program {

namespace {

struct AnalyzeArguments {
  AnalyzeOptions options;
  std::string run;
  std::string out;
  bool json = false;
};

void analyze(AnalyzeArguments& arguments) {
  arguments.options.run = arguments.run;
  const std::string out =
      arguments.out.empty() ? (arguments.options.run / "analysis.json").native() : arguments.out;
  check_output(out);
  const AnalyzedRun run = as_usage([&] { return analyze_run(arguments.options); });
  const std::string text = format_json(to_json(run));
  write_file(out, text);
  print(arguments.json ? text : fmt::format("{}\nwrote {}\n", to_text(run), out));
}

}  // namespace

void add_analyze(CLI::App& program) {
  const auto arguments = std::make_shared<AnalyzeArguments>();
  CLI::App& command = *program.add_subcommand(
      "analyze", "Show what the batch losses of a recorded run tell about its samples");
  command.add_option("RUN", arguments->run, "folder of a run, or of a recording")
      ->required()
      ->type_name("");
  add_text(command, "--alpha", "NUMBER",
           "alpha of the batch loss score to analyze (default: the run's own, else 0.7)",
           [arguments](const std::string& text) {
             arguments->options.alpha = parse_number(text);
             if (!arguments->options.alpha) {
               throw UsageError(fmt::format("--alpha must be in [0, 1), got {}", text));
             }
           });
  add_text(command, "--sample", "INDEX",
           "sample whose time series is shown (default: the one with the median loss)",
           [arguments](const std::string& text) {
             arguments->options.sample = parse_count(text);
             if (!arguments->options.sample) {
               throw UsageError(
                   fmt::format("--sample must be a whole number of at least 0, got {}", text));
             }
           });
  add_path(command, "--out", arguments->out,
           "JSON file for the results (default: RUN/analysis.json)")
      .type_name("FILE");
  command.add_flag("--json", arguments->json, "print the results as JSON, not as tables");
  command.footer(
      R"(Needs a run that was recorded: tamis train --record, or record() of a handler in C++ or
Python. Shows the spectra of a sample's loss and of the noise of its batches, the
signal-to-noise ratio before and after the moving average for many alphas, and how well
every score agrees with the true losses. tamis report RUN shows the same as charts.
Example: tamis train --record --epochs 40 --out runs/a && tamis analyze runs/a
)");
  command.callback([arguments] { analyze(*arguments); });
}

}  // namespace tamis::program
