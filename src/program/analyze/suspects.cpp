// tamis suspects: the samples that are hard most often and most lastingly.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/analyze/suspect_list.h"
#include "program/commands.h"
#include "program/shared/arguments.h"
#include "program/shared/json_input.h"
#include "program/shared/output.h"
#include "program/shared/table.h"
#include "runs/run.h"
#include "tamis/method.h"

namespace tamis::program {

namespace {

namespace fs = std::filesystem;
using analysis::Hardness;

struct SuspectsArguments {
  std::string source;
  std::string score;   // empty: the best one that the recording allows
  std::string labels;  // a file
  std::uint64_t top = 100;
  bool json = false;
  bool csv = false;
};

SuspectList from_recording(const SuspectsArguments& arguments) {
  const Recording recording(arguments.source);
  const std::optional<Spec> score =
      arguments.score.empty() ? best_score(recording) : parse_spec(arguments.score);
  if (!score) {
    throw std::runtime_error(fmt::format(
        "{}: has neither norms of watched outputs nor per-sample losses, so it cannot say "
        "which samples are hard; --score reconstruction guesses from batch losses",
        arguments.source));
  }
  return suspects_of_recording(recording, *score, static_cast<std::size_t>(arguments.top));
}

SuspectList from_state(const SuspectsArguments& arguments, const std::string& path) {
  if (!arguments.score.empty()) {
    throw UsageError(
        fmt::format("--score must be left out for a state, whose scores are what they are, got {}",
                    arguments.score));
  }
  return suspects_of_state(path, static_cast<std::size_t>(arguments.top));
}

SuspectList find_suspects(const SuspectsArguments& arguments) {
  if (!fs::is_directory(arguments.source)) return from_state(arguments, arguments.source);
  if (Recording::exists(arguments.source)) return from_recording(arguments);
  const fs::path state = fs::path(arguments.source) / "pruner.safetensors";
  if (fs::exists(state)) return from_state(arguments, state.native());
  throw std::runtime_error(fmt::format(
      "{}: holds neither a recording nor a pruner.safetensors; name the folder of a run "
      "or of a recording, or a state",
      arguments.source));
}

// What the run says of its samples, if the source is a run or in one, and the labels of --labels.
runs::SampleList find_names(const SuspectsArguments& arguments, std::size_t num_samples) {
  runs::SampleList who;
  for (const fs::path& folder : {fs::path(arguments.source), fs::path(arguments.source) / ".."}) {
    const fs::path run = folder.lexically_normal();
    if (!runs::is_run(run)) continue;
    who = runs::read_samples(run, num_samples).value_or(who);
    break;
  }
  if (arguments.labels.empty()) return who;
  const std::vector<std::int32_t> labels = read_labels(arguments.labels);
  if (labels.size() != num_samples) {
    throw std::runtime_error(fmt::format("{}: labels must be as many as samples ({}), got {}",
                                         arguments.labels, num_samples, labels.size()));
  }
  who.labels.assign(labels.begin(), labels.end());
  who.true_labels.clear();
  return who;
}

// A column of the table or of the comma-separated values: what only some runs have.
struct NameColumn {
  std::string title;
  std::function<std::string(std::size_t sample)> cell;
};

std::vector<NameColumn> name_columns(const runs::SampleList& who) {
  std::vector<NameColumn> columns;
  if (!who.files.empty()) {
    columns.push_back({"file", [&](std::size_t i) { return who.files[i]; }});
  } else if (!who.indices.empty()) {
    columns.push_back({"index", [&](std::size_t i) { return fmt::format("{}", who.indices[i]); }});
  }
  if (!who.labels.empty()) {
    columns.push_back({"label", [&](std::size_t i) { return who.class_name(who.labels[i]); }});
  }
  if (!who.true_labels.empty()) {
    columns.push_back(
        {"true label", [&](std::size_t i) { return who.class_name(who.true_labels[i]); }});
  }
  return columns;
}

// Names come from files, and a row is one line.
std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return text;
}

// As RFC 4180 has it.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string to_csv(const SuspectList& suspects) {
  const std::vector<NameColumn> names = name_columns(suspects.who);
  std::string text = "sample";
  for (const NameColumn& column : names) {
    std::string title = column.title;
    std::replace(title.begin(), title.end(), ' ', '_');
    text += "," + title;
  }
  text += ",score,rank,hard_share,hard_in_a_row";
  for (const std::uint64_t epoch : suspects.epochs) text += fmt::format(",epoch_{}", epoch + 1);
  text += "\n";
  for (std::size_t k = 0; k < suspects.samples.size(); ++k) {
    const Hardness& one = suspects.samples[k];
    text += fmt::format("{}", one.sample);
    for (const NameColumn& column : names) text += "," + csv_cell(column.cell(one.sample));
    text += fmt::format(",{},{},{},{}", one.score, one.rank, one.hard_share, one.num_hard_in_a_row);
    for (std::size_t e = 0; e < suspects.epochs.size(); ++e) {
      const float score = suspects.curves[k][e];
      text += std::isnan(score) ? "," : fmt::format(",{}", score);
    }
    text += "\n";
  }
  return text;
}

// Places in the list of epochs, at even distances, the first and the last among them.
std::vector<std::size_t> shown_epochs(std::size_t num_epochs) {
  constexpr std::size_t kShown = 6;
  std::vector<std::size_t> places;
  const std::size_t count = std::min(num_epochs, kShown);
  for (std::size_t k = 0; k < count; ++k) {
    places.push_back(count == 1 ? 0 : k * (num_epochs - 1) / (count - 1));
  }
  return places;
}

std::string to_text(const SuspectList& suspects) {
  FactList facts;
  facts.add("score", tamis::to_text(suspects.score));
  facts.add("scored", fmt::format("{} of {} samples", with_commas(suspects.num_scored),
                                  with_commas(suspects.num_samples)));
  facts.add("looked at", suspects.epochs.empty()
                             ? std::string("the scores of a state")
                             : "the scores after " + counted(suspects.epochs.size(), "epoch"));
  if (!suspects.who.true_labels.empty()) {
    facts.add("wrong labels",
              fmt::format("{} of these {}, {} of all", count_wrong(suspects),
                          suspects.samples.size(), with_commas(num_wrong_labels(suspects.who))));
  }
  const std::vector<NameColumn> names = name_columns(suspects.who);
  const std::vector<std::size_t> epochs = shown_epochs(suspects.epochs.size());
  std::vector<std::vector<std::string>> rows = {{"sample"}};
  for (const NameColumn& column : names) rows[0].push_back(column.title);
  rows[0].insert(rows[0].end(), {"mean rank", "in the hardest tenth", "in a row", "score"});
  for (const std::size_t place : epochs) {
    rows[0].push_back(fmt::format("epoch {}", suspects.epochs[place] + 1));
  }
  for (std::size_t k = 0; k < suspects.samples.size(); ++k) {
    const Hardness& one = suspects.samples[k];
    std::vector<std::string> row = {fmt::format("{}", one.sample)};
    for (const NameColumn& column : names) row.push_back(on_one_line(column.cell(one.sample)));
    row.push_back(fmt::format("{:.4f}", one.rank));
    row.push_back(fmt::format("{:.0f} %", 100.0 * one.hard_share));
    row.push_back(fmt::format("{}", one.num_hard_in_a_row));
    row.push_back(fmt::format("{:.4g}", one.score));
    for (const std::size_t place : epochs) {
      const float score = suspects.curves[k][place];
      row.push_back(std::isnan(score) ? "-" : fmt::format("{:.3g}", score));
    }
    rows.push_back(std::move(row));
  }
  return facts.text() + "\n" + format_table(rows);
}

void run_suspects(const SuspectsArguments& arguments) {
  if (arguments.json && arguments.csv) throw UsageError("--json and --csv are one too many");
  if (arguments.top == 0) throw UsageError("--top must be at least 1, got 0");
  SuspectList suspects = as_usage([&] { return find_suspects(arguments); });
  suspects.who = find_names(arguments, suspects.num_samples);
  if (arguments.json) {
    print(format_json(to_json(suspects)));
  } else {
    print(arguments.csv ? to_csv(suspects) : to_text(suspects));
  }
}

}  // namespace

void add_suspects(CLI::App& program) {
  auto arguments = std::make_shared<SuspectsArguments>();
  CLI::App& command = *program.add_subcommand(
      "suspects", "List the samples that are hard most often and most lastingly");
  command
      .add_option("RUN", arguments->source,
                  "folder of a run or of a recording, or the saved state of a run")
      ->required()
      ->type_name("");
  command.add_option("--top", arguments->top, "how many (default: 100)")->type_name("K");
  command
      .add_option(
          "--score", arguments->score,
          "of a recording: NAME or NAME:option=value (default: sample-loss if the losses of\n"
          "all samples were recorded or no outputs were watched, else output-gradient)")
      ->type_name("NAME");
  command
      .add_option("--labels", arguments->labels,
                  "the class of every sample, as JSON (default: what the run says of its samples)")
      ->type_name("FILE");
  command.add_flag("--json", arguments->json, "print JSON, with the scores over the epochs");
  command.add_flag("--csv", arguments->csv, "print the same as comma-separated values");
  command.footer(
      "Wrong labels and bad data stay hard while the model learns everything else. A sample's "
      "rank\n"
      "is 0 for the lowest score and 1 for the highest; samples come by their mean rank over all\n"
      "epochs. A state has the scores of one moment only.\n\n"
      "Example:\n"
      "  tamis train --method full --record 60000 --epochs 10 --out runs/a\n"
      "  tamis suspects runs/a --top 50 --csv > suspects.csv\n");
  command.callback([arguments] { run_suspects(*arguments); });
}

}  // namespace tamis::program
