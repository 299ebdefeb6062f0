// tamis report: one page that shows and compares runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "program/commands.h"
#include "program/report/data.h"
#include "program/report/template.h"
#include "program/shared/arguments.h"
#include "program/shared/output.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  std::string title;
  bool json = false;
};

void print_verdicts(const ordered_json& document) {
  for (const ordered_json& comparison : document["comparisons"]) {
    std::string text = fmt::format("{}:", comparison["name"].get<std::string>());
    for (const ordered_json& sentence : comparison["verdict"]) {
      text += fmt::format(" {}", sentence.get<std::string>());
    }
    print(text + "\n");
    for (const ordered_json& caution : comparison["cautions"]) {
      print(fmt::format("note: {}\n", caution.get<std::string>()));
    }
  }
}

void report(const ReportArguments& arguments) {
  const bool writes_page = !arguments.json || !arguments.out.empty();
  const std::string out = arguments.out.empty() ? "report.html" : arguments.out;
  if (writes_page) check_output(out);
  const ordered_json document = report_document(arguments.runs, arguments.title);
  if (writes_page) write_file(out, report_page(report_template(), document));
  if (arguments.json) {
    print(format_json(document));
    return;
  }
  print_verdicts(document);
  print(fmt::format("wrote {}\n", out));
}

}  // namespace

void add_report(CLI::App& program) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* const command = program.add_subcommand("report", "Show and compare runs on one page");
  command->add_option("RUN", arguments->runs, "folders of runs or of comparisons")
      ->required()
      ->type_name("FOLDER");
  add_path(*command, "--out", arguments->out, "HTML file for the page (default: report.html)")
      .type_name("FILE");
  command
      ->add_option("--title", arguments->title, "title of the page (default: made from the runs)")
      ->type_name("TEXT");
  command->add_flag("--json", arguments->json,
                    "print the page's data as JSON; the page is written only if --out is given");
  command->footer(
      "The page is one HTML file that needs no network. Runs that differ only in their seed share\n"
      "one row of its table; differences to full are paired by seed.\n"
      "Example: tamis report runs/compare --out report.html");
  command->callback([arguments] { report(*arguments); });
}

}  // namespace tamis::program
