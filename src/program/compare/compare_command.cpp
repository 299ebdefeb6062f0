#include "program/compare/compare_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "program/compare/child_process.h"
#include "program/shared/arguments.h"
#include "program/shared/output.h"
#include "program/shared/program.h"
#include "program/shared/signals.h"
#include "program/shared/terminal.h"

namespace tamis::program {

namespace {

namespace fs = std::filesystem;
using runs::Comparison;
using runs::PlannedRun;

constexpr const char* kCommand = "command";

runs::ComparisonPlan new_plan(const std::string& command, const ComparisonFlags& flags,
                              const std::vector<std::string>& methods) {
  if (methods.empty()) throw UsageError("--command needs --methods, such as full bls-infobatch");
  runs::ComparisonPlan plan{
      .shared = {{kCommand, command}},
      .methods = {},
      .seeds = flags.seeds.empty() ? std::vector<std::uint64_t>{0, 1, 2} : flags.seeds,
      .baseline = flags.baseline.empty() ? default_baseline(methods) : flags.baseline};
  for (const std::string& method : methods) plan.methods.push_back({.name = method});
  as_usage([&] {
    runs::validate(plan);
    return 0;
  });
  plan.reach = flags.reach;
  return plan;
}

// The end of a text file, without blank lines.
std::string last_lines(const fs::path& path) {
  constexpr std::size_t kLines = 10;
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    lines.push_back(line + "\n");
    if (lines.size() > kLines) lines.erase(lines.begin());
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// What the program has put into its folder so far.
std::string describe_so_far(const PlannedRun& planned) {
  try {
    if (!runs::is_run(planned.folder)) return planned.title() + "  starting";
    const runs::RunData run = planned.read();
    if (run.epochs.empty()) return planned.title() + "  first epoch";
    return fmt::format("{}  {}", planned.title(),
                       format_epoch(run.epochs.back(), run.metrics, run.num_epochs));
  } catch (const std::runtime_error&) {
    // A file that is half written; what stays wrong is said when the program has ended.
    return planned.title();
  }
}

// For the line that is written over, which must not wrap.
std::string live_text(const PlannedRun& planned) {
  constexpr std::size_t kBar = 28;
  return describe_so_far(planned).substr(0, terminal_width() - kBar);
}

// Files for what the program prints, beside the folder of its run, which is the program's own.
struct Logs {
  fs::path out;
  fs::path err;

  explicit Logs(const PlannedRun& run)
      : out(run.folder.native() + ".out"), err(run.folder.native() + ".err") {}
};

void check_done(const PlannedRun& planned, int exit_code) {
  const Logs logs(planned);
  const std::string who = fmt::format("{} seed {}", planned.method->name, planned.seed);
  if (exit_code != 0) {
    print_error(printable(last_lines(logs.err)));
    throw CommandFailed(
        fmt::format("{}: the program ended with exit code {}; what it printed is in {} and {}", who,
                    exit_code, logs.out.native(), logs.err.native()),
        exit_code);
  }
  if (!runs::is_run(planned.folder)) {
    throw std::runtime_error(
        fmt::format("{}: the program ended well but wrote no run into {}; it must take --out "
                    "FOLDER and write config.json and metrics.jsonl there",
                    who, planned.folder.native()));
  }
  const runs::RunData run = planned.read();
  if (!run.is_finished()) {
    throw std::runtime_error(fmt::format(
        "{}: the program ended well after {} of {} epochs; {} must get one line per epoch", who,
        run.epochs.size(), run.num_epochs, (planned.folder / runs::kMetricsFile).native()));
  }
}

// Returns false if a signal ended it.
bool run_command(const std::string& command, const PlannedRun& run,
                 std::optional<Progress>& progress) {
  const Logs logs(run);
  // What an earlier attempt said would be taken for the reason of a failure.
  fs::remove(logs.err);
  if (!runs::is_run(run.folder)) fs::remove(logs.out);
  ChildProcess child(command,
                     {"--method", run.method->name, "--seed", fmt::format("{}", run.seed), "--out",
                      run.folder.native()},
                     logs.out, logs.err);
  bool is_told = false;
  for (std::uint64_t k = 0; !child.has_ended(); ++k) {
    if (const int signal = StopSignals::received(); signal != 0 && !is_told) {
      child.send(signal);
      is_told = true;
    }
    if (progress && k % 20 == 0) progress->show(run.number - 1, live_text(run));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (progress) progress->clear();
  if (!is_told) check_done(run, child.exit_code());
  return !is_told;
}

}  // namespace

void CommandFlags::add(CLI::App& app) {
  app.add_option("--command", command, "a program of your own that trains, see below")
      ->type_name("COMMAND");
}

std::string describe_command() {
  return "With --command any program trains: it is called as COMMAND --method M --seed S --out\n"
         "FOLDER and writes config.json and metrics.jsonl into FOLDER, as docs/run_folder.md "
         "says.\n"
         "If FOLDER holds a run that was interrupted, the program continues it or starts it "
         "again.\n"
         "What it prints goes to FOLDER.out and FOLDER.err. If it fails, tamis shows the last "
         "lines\n"
         "of its errors and exits with its exit code.\n";
}

bool is_command_comparison(const std::string& folder) {
  return !folder.empty() && fs::exists(fs::path(folder) / runs::kCompareFile) &&
         runs::read_plan(folder).shared.contains(kCommand);
}

void compare_with_command(const CommandFlags& command, const ComparisonFlags& flags,
                          const std::vector<std::string>& methods) {
  const bool resumes = !flags.resume.empty();
  if (resumes) {
    flags.check_resume_alone("comparison", !command.command.empty() || !methods.empty());
  }
  const Comparison comparison =
      resumes ? Comparison::open(flags.resume)
              : Comparison::create(flags.out.empty() ? default_folder({"compare"}) : flags.out,
                                   new_plan(command.command, flags, methods), flags.existing());
  const std::string text = comparison.plan().shared.value(kCommand, "");
  if (text.empty()) {
    throw std::runtime_error(fmt::format(
        "{}: tamis train makes the runs of this comparison, which takes a tamis with LibTorch",
        comparison.path().native()));
  }
  const StopSignals signals;
  const std::vector<PlannedRun> all = comparison.runs();
  std::optional<Progress> progress;
  if (!flags.quiet) progress.emplace(all.size());
  for (const PlannedRun& run : all) {
    bool was_finished = run.is_finished();
    runs::Attempts attempts(flags.repeat_disturbed);
    do {
      if (run.is_finished()) continue;
      was_finished = false;
      if (!run_command(text, run, progress)) {
        stop_interrupted("compare", comparison.path().string());
      }
    } while (attempts.discards(run));
    if (!flags.quiet && !flags.json) print_run(run, was_finished);
  }
  comparison.finish();
  print_summary(comparison, flags, text);
}

}  // namespace tamis::program
