// tamis suspects: the samples that are hard most often and most lastingly.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/analyze/score_replay.h"
#include "program/commands.h"
#include "program/shared/arguments.h"
#include "program/shared/json_input.h"
#include "program/shared/output.h"
#include "program/shared/table.h"
#include "runs/spec_json.h"
#include "tamis/analysis/hardness.h"
#include "tamis/method.h"
#include "tamis/pruner.h"
#include "tamis/recording.h"

namespace tamis::program {

namespace {

namespace fs = std::filesystem;
using analysis::Hardness;
using analysis::HardnessRanking;
using nlohmann::ordered_json;

struct SuspectsArguments {
  std::string source;
  std::string score;   // empty: the best one that the recording allows
  std::string labels;  // a file
  std::uint64_t top = 100;
  bool json = false;
  bool csv = false;
};

// The suspects of a run, hardest first.
struct Suspects {
  Spec score;
  std::size_t num_samples = 0;
  std::size_t num_scored = 0;
  std::vector<std::uint64_t> epochs;  // after which scores were looked at; empty for a state
  std::vector<Hardness> samples;
  std::vector<std::vector<float>> curves;  // by sample and epoch, NaN before its first visit
};

// Calls `use` with the replay after the last step of every epoch.
template <typename Use>
void replay_epochs(const Recording& recording, const Spec& score, const Use& use) {
  ScoreReplay replay(score, recording);
  std::optional<std::uint64_t> running;
  recording.read([&](const RecordedStep& step) {
    if (running && *running != step.epoch) use(*running, replay);
    running = step.epoch;
    replay.observe(step);
  });
  if (running) use(*running, replay);
}

// Per-sample quality if the recording has it.
Spec choose_score(const Recording& recording, const std::string& source) {
  bool has_norms = false;
  bool has_losses = false;
  recording.read([&](const RecordedStep& step) {
    has_norms = has_norms || !step.norms.empty();
    has_losses = has_losses || std::any_of(step.losses.begin(), step.losses.end(),
                                           [](float loss) { return std::isfinite(loss); });
  });
  if (has_norms) return {"output-gradient"};
  if (has_losses) return {"sample-loss"};
  throw std::runtime_error(fmt::format(
      "{}: has neither norms of watched outputs nor per-sample losses, so it cannot say "
      "which samples are hard; --score reconstruction guesses from batch losses",
      source));
}

Suspects from_recording(const SuspectsArguments& arguments) {
  const Recording recording(arguments.source);
  const Spec score = arguments.score.empty() ? choose_score(recording, arguments.source)
                                             : parse_spec(arguments.score);
  Suspects suspects;
  suspects.num_samples = recording.num_samples();
  HardnessRanking ranking(recording.num_samples());
  replay_epochs(recording, score, [&](std::uint64_t epoch, const ScoreReplay& replay) {
    suspects.score = replay.scorer().spec();
    suspects.epochs.push_back(epoch);
    ranking.add(replay.scores());
  });
  suspects.num_scored = ranking.num_scored();
  suspects.samples = ranking.hardest(static_cast<std::size_t>(arguments.top));
  suspects.curves.resize(suspects.samples.size());
  replay_epochs(recording, score, [&](std::uint64_t, const ScoreReplay& replay) {
    const std::vector<float> scores = replay.scores();
    for (std::size_t k = 0; k < suspects.samples.size(); ++k) {
      suspects.curves[k].push_back(scores[suspects.samples[k].sample]);
    }
  });
  return suspects;
}

Suspects from_state(const SuspectsArguments& arguments, const std::string& path) {
  if (!arguments.score.empty()) {
    throw UsageError(
        fmt::format("--score must be left out for a state, whose scores are what they are, got {}",
                    arguments.score));
  }
  const Pruner pruner = Pruner::from_file(path);
  HardnessRanking ranking(pruner.num_samples());
  ranking.add(pruner.scores());
  return {.score = *pruner.options().score,
          .num_samples = pruner.num_samples(),
          .num_scored = ranking.num_scored(),
          .epochs = {},
          .samples = ranking.hardest(static_cast<std::size_t>(arguments.top)),
          .curves = {}};
}

Suspects find_suspects(const SuspectsArguments& arguments) {
  if (!fs::is_directory(arguments.source)) return from_state(arguments, arguments.source);
  if (Recording::exists(arguments.source)) return from_recording(arguments);
  const fs::path state = fs::path(arguments.source) / "pruner.safetensors";
  if (fs::exists(state)) return from_state(arguments, state.native());
  throw std::runtime_error(fmt::format(
      "{}: holds neither a recording nor a pruner.safetensors; name the folder of a run "
      "or of a recording, or a state",
      arguments.source));
}

class Labels {
 public:
  Labels(const std::string& path, std::size_t num_samples) {
    if (path.empty()) return;
    labels_ = read_labels(path);
    if (labels_.size() == num_samples) return;
    throw std::runtime_error(fmt::format("{}: labels must be as many as samples ({}), got {}", path,
                                         num_samples, labels_.size()));
  }
  bool empty() const { return labels_.empty(); }
  std::int32_t operator[](std::size_t sample) const { return labels_[sample]; }

 private:
  std::vector<std::int32_t> labels_;
};

ordered_json to_json(const Suspects& suspects, const Labels& labels) {
  ordered_json all = ordered_json::array();
  for (std::size_t k = 0; k < suspects.samples.size(); ++k) {
    const Hardness& one = suspects.samples[k];
    ordered_json entry = {{"sample", one.sample}};
    if (!labels.empty()) entry["label"] = labels[one.sample];
    entry["score"] = one.score;
    entry["rank"] = one.rank;
    entry["hard_share"] = one.hard_share;
    entry["hard_in_a_row"] = one.num_hard_in_a_row;
    if (!suspects.curves.empty()) entry["scores"] = suspects.curves[k];
    all.push_back(std::move(entry));
  }
  return {{"score", runs::spec_to_json(suspects.score)},
          {"num_samples", suspects.num_samples},
          {"num_scored", suspects.num_scored},
          {"epochs", suspects.epochs},
          {"suspects", all}};
}

std::string to_csv(const Suspects& suspects, const Labels& labels) {
  std::string text = labels.empty() ? "sample,score,rank,hard_share,hard_in_a_row"
                                    : "sample,label,score,rank,hard_share,hard_in_a_row";
  for (const std::uint64_t epoch : suspects.epochs) text += fmt::format(",epoch_{}", epoch + 1);
  text += "\n";
  for (std::size_t k = 0; k < suspects.samples.size(); ++k) {
    const Hardness& one = suspects.samples[k];
    text += fmt::format("{}", one.sample);
    if (!labels.empty()) text += fmt::format(",{}", labels[one.sample]);
    text += fmt::format(",{},{},{},{}", one.score, one.rank, one.hard_share, one.num_hard_in_a_row);
    for (std::size_t e = 0; e < suspects.epochs.size(); ++e) {
      const float score = suspects.curves[k][e];
      text += std::isnan(score) ? "," : fmt::format(",{}", score);
    }
    text += "\n";
  }
  return text;
}

std::string to_text(const Suspects& suspects, const Labels& labels) {
  FactList facts;
  facts.add("score", tamis::to_text(suspects.score));
  facts.add("scored", fmt::format("{} of {} samples", with_commas(suspects.num_scored),
                                  with_commas(suspects.num_samples)));
  facts.add("looked at", suspects.epochs.empty()
                             ? std::string("the scores of a state")
                             : "the scores after " + counted(suspects.epochs.size(), "epoch"));
  std::vector<std::vector<std::string>> rows = {{"sample"}};
  if (!labels.empty()) rows[0].emplace_back("label");
  rows[0].insert(rows[0].end(), {"score", "mean rank", "in the hardest tenth", "in a row"});
  for (const Hardness& one : suspects.samples) {
    std::vector<std::string> row = {fmt::format("{}", one.sample)};
    if (!labels.empty()) row.push_back(fmt::format("{}", labels[one.sample]));
    row.push_back(fmt::format("{:.4g}", one.score));
    row.push_back(fmt::format("{:.4f}", one.rank));
    row.push_back(fmt::format("{:.0f} %", 100.0 * one.hard_share));
    row.push_back(fmt::format("{}", one.num_hard_in_a_row));
    rows.push_back(std::move(row));
  }
  return facts.text() + "\n" + format_table(rows);
}

void run_suspects(const SuspectsArguments& arguments) {
  if (arguments.json && arguments.csv) throw UsageError("--json and --csv are one too many");
  if (arguments.top == 0) throw UsageError("--top must be at least 1, got 0");
  const Suspects suspects = as_usage([&] { return find_suspects(arguments); });
  const Labels labels(arguments.labels, suspects.num_samples);
  if (arguments.json) {
    print(format_json(to_json(suspects, labels)));
  } else {
    print(arguments.csv ? to_csv(suspects, labels) : to_text(suspects, labels));
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
      .add_option("--score", arguments->score,
                  "of a recording: NAME or NAME:option=value (default: output-gradient if outputs\n"
                  "were watched, else sample-loss)")
      ->type_name("NAME");
  command.add_option("--labels", arguments->labels, "the class of every sample, as JSON")
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
