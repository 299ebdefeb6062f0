// tamis replay: feeds a recorded run to a score.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "program/analyze/score_replay.h"
#include "program/commands.h"
#include "program/shared/arguments.h"
#include "program/shared/json_input.h"
#include "program/shared/output.h"
#include "program/shared/score_summary.h"
#include "program/shared/spec_flags.h"
#include "program/shared/terminal.h"
#include "tamis/method.h"
#include "tamis/pruner.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;
using runs::array_member;
using runs::get_float_or_null;
using runs::get_whole;
using runs::member;
using runs::refuse;

struct ReplayArguments {
  std::string trace;
  SpecFlags spec;
  std::string out;
  bool json = false;
};

// Reads a trace batch by batch. Every message says which entry of the file is wrong.
class TraceReader {
 public:
  TraceReader(const ordered_json& document, std::string source)
      : source_(std::move(source)),
        num_samples_(read_num_samples(document)),
        batches_(array_member(document, "batches", source_)),
        losses_(array_member(document, "losses", source_)),
        norms_(document.contains("norms") ? &array_member(document, "norms", source_) : nullptr) {
    check_length("losses", losses_);
    if (norms_ != nullptr) check_length("norms", *norms_);
  }

  std::size_t num_samples() const { return num_samples_; }
  std::size_t num_batches() const { return batches_.size(); }

  // Feeds batch `k` to the pruner.
  void observe(std::size_t k, Pruner& pruner) {
    read_indices(k);
    const LossKind needed = pruner.scorer().needs();
    const ordered_json& loss = losses_[k];
    Pruner::Norms norms;
    if (needed == LossKind::output_gradients) norms = read_norms(k, pruner.scorer());
    if (loss.is_array()) {
      read_floats("losses", k, loss, sample_losses_);
      pruner.observe(indices_, sample_losses_, norms);
    } else if (!loss.is_number() && !loss.is_null()) {
      refuse(source_, fmt::format("losses[{}]", k), "a number, null or an array of these", loss);
    } else if (needed != LossKind::sample_losses) {
      constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
      pruner.observe(indices_, loss.is_null() ? kNaN : loss.get<double>(), norms);
    } else if (loss.is_null()) {
      sample_losses_.assign(indices_.size(), std::numeric_limits<float>::quiet_NaN());
      pruner.observe(indices_, sample_losses_);
    } else {
      refuse(source_, fmt::format("losses[{}]", k),
             fmt::format("an array of {}, because score {} needs one loss per sample",
                         indices_.size(), pruner.scorer().spec().name),
             loss);
    }
  }

 private:
  std::size_t read_num_samples(const ordered_json& document) const {
    const ordered_json& value = member(document, "num_samples", source_);
    std::uint64_t count = 0;
    if (!get_whole(value, kMaxSamples + 1, count) || count == 0) {
      refuse(source_, "num_samples", fmt::format("a whole number in [1, {}]", kMaxSamples), value);
    }
    return static_cast<std::size_t>(count);
  }

  void read_indices(std::size_t k) {
    const ordered_json& batch = batches_[k];
    if (!batch.is_array() || batch.empty()) {
      refuse(source_, fmt::format("batches[{}]", k), "an array of at least one index", batch);
    }
    indices_.resize(batch.size());
    for (std::size_t j = 0; j < batch.size(); ++j) {
      std::uint64_t index = 0;
      if (!get_whole(batch[j], num_samples_, index)) {
        refuse(source_, fmt::format("batches[{}][{}]", k, j),
               fmt::format("a whole number in [0, {})", num_samples_), batch[j]);
      }
      indices_[j] = static_cast<std::uint32_t>(index);
    }
  }

  void check_length(std::string_view name, const ordered_json& values) const {
    if (values.size() == batches_.size()) return;
    throw std::runtime_error(fmt::format("{}: {} must be as many as batches ({}), got {}", source_,
                                         name, batches_.size(), values.size()));
  }

  std::span<const float> read_norms(std::size_t k, const Scorer& scorer) {
    if (norms_ == nullptr || !(*norms_)[k].is_array()) {
      throw std::runtime_error(
          fmt::format("{}: norms[{}] must be an array of {}, because score {} needs the norm of "
                      "each output's gradient; it is missing",
                      source_, k, indices_.size(), scorer.spec().name));
    }
    read_floats("norms", k, (*norms_)[k], sample_norms_);
    return sample_norms_;
  }

  void read_floats(std::string_view name, std::size_t k, const ordered_json& from,
                   std::vector<float>& to) const {
    if (from.size() != indices_.size()) {
      throw std::runtime_error(
          fmt::format("{}: {}[{}] must have as many entries as batches[{}] ({}), got {}", source_,
                      name, k, k, indices_.size(), from.size()));
    }
    to.resize(from.size());
    for (std::size_t j = 0; j < from.size(); ++j) {
      if (!get_float_or_null(from[j], to[j])) {
        refuse(source_, fmt::format("{}[{}][{}]", name, k, j), "a number or null", from[j]);
      }
    }
  }

  std::string source_;
  std::size_t num_samples_;
  const ordered_json& batches_;
  const ordered_json& losses_;
  const ordered_json* norms_;  // null if there are none
  std::vector<std::uint32_t> indices_;
  std::vector<float> sample_losses_;
  std::vector<float> sample_norms_;
};

// What came out of a trace or a recording.
struct ReplayResult {
  Spec score;
  std::vector<float> scores;
  std::uint64_t num_observations = 0;
  std::uint64_t num_skipped = 0;
  std::uint64_t num_without_norms = 0;  // steps

  std::size_t num_scored() const {
    return static_cast<std::size_t>(
        std::count_if(scores.begin(), scores.end(), [](float s) { return !std::isnan(s); }));
  }
};

std::string summary(const ReplayResult& replayed) {
  FactList facts;
  facts.add("score", to_text(replayed.score));
  facts.add("observations", with_commas(replayed.num_observations));
  facts.add("skipped", with_commas(replayed.num_skipped));
  if (replayed.num_without_norms > 0) {
    facts.add("without norms", with_commas(replayed.num_without_norms));
  }
  add_score_facts(replayed.scores, facts);
  return facts.text() + score_histogram(replayed.scores);
}

ordered_json to_json(const ReplayResult& replayed) {
  ordered_json json = {{"scores", scores_json(replayed.scores)},
                       {"num_scored", replayed.num_scored()},
                       {"num_skipped_observations", replayed.num_skipped}};
  if (replayed.num_without_norms > 0) json["num_without_norms"] = replayed.num_without_norms;
  return json;
}

// Of each sample: its score, a copy, and both as JSON.
constexpr double kReplayBytes = 24.0;

ReplayResult replay_trace(const std::string& path, const Spec& score) {
  const ordered_json document = read_large_json(path);
  TraceReader trace(document, path);
  require_memory_for(trace.num_samples(), kReplayBytes, path);
  Pruner pruner({.num_samples = trace.num_samples(),
                 .num_epochs = 1,
                 .policy = {.name = "none"},
                 .score = score});
  Progress progress(trace.num_batches());
  for (std::size_t k = 0; k < trace.num_batches(); ++k) {
    if (k % 4096 == 0) progress.show(k, fmt::format("batch {} of {}", k, trace.num_batches()));
    trace.observe(k, pruner);
  }
  return {.score = *pruner.options().score,
          .scores = pruner.scores(),
          .num_observations = pruner.num_observations(),
          .num_skipped = pruner.num_skipped_observations()};
}

ReplayResult replay_recording(const std::string& folder, const Spec& score) {
  const Recording recording(folder);
  require_memory_for(recording.num_samples(), kReplayBytes, folder);
  ScoreReplay replay(score, recording);
  std::uint64_t num_steps = 0;
  recording.read([&](const RecordedStep& step) {
    replay.observe(step);
    ++num_steps;
  });
  if (num_steps > 0 && replay.num_without_norms() == num_steps) {
    const int order = replay.scorer().norm_order();
    if (recording.norm_order() != order) {
      throw std::runtime_error(fmt::format(
          "{}: was recorded with norms of order {}, and the score takes those of order {}; give "
          "cross_entropy={}",
          folder, recording.norm_order(), order, recording.norm_order() == 1 ? 1 : 0));
    }
    throw std::runtime_error(
        fmt::format("{}: score {} needs the norms of the output gradients, and this recording has "
                    "none; record a run whose outputs are watched",
                    folder, score.name));
  }
  return {.score = replay.scorer().spec(),
          .scores = replay.scores(),
          .num_observations = replay.num_observations(),
          .num_skipped = replay.num_skipped(),
          .num_without_norms = replay.num_without_norms()};
}

void replay(ReplayArguments arguments) {
  if (arguments.out == "-") {
    arguments.out.clear();
    arguments.json = true;
  }
  const Spec score = arguments.spec.choose().score.value();
  if (!arguments.out.empty()) check_output(arguments.out);
  const ReplayResult replayed = std::filesystem::is_directory(arguments.trace)
                                    ? replay_recording(arguments.trace, score)
                                    : replay_trace(arguments.trace, score);
  const bool prints_json =
      arguments.json || (arguments.out.empty() && !is_terminal(Stream::output));
  if (prints_json || !arguments.out.empty()) {
    const std::string text = format_json(to_json(replayed));
    if (!arguments.out.empty()) write_file(arguments.out, text);
    if (prints_json) print(text);
  }
  if (!prints_json) print(summary(replayed));
}

}  // namespace

void add_replay(CLI::App& program) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App& command = *program.add_subcommand("replay", "Feed a recorded run to a score");
  command
      .add_option("TRACE", arguments->trace,
                  "the recorded run: a JSON file, - for standard input, or the folder of a "
                  "run\nthat tamis train --record made")
      ->required()
      ->type_name("");
  add_path(command, "--out", arguments->out, "write the scores to this file").type_name("FILE");
  command.add_flag("--json", arguments->json,
                   "print the scores as JSON instead of a summary (without --out that is\n"
                   "what you get anyway unless standard output is a terminal)");
  arguments->spec.add_score(command);
  command.footer(
      R"(A folder is replayed with the mean losses of its batches; a score of per-sample losses sees those
that were recorded, and output-gradient the norms of watched outputs. A file is {"num_samples": N, "batches": [[index, ...], ...], "losses": [L, ...]}: for every
training step the samples of its batch, counted from 0, and the batch's mean loss or an
array with one loss per sample; for output-gradient also "norms": [[norm, ...], ...], those of
the loss's gradient by each output. A loss that is null, NaN or infinite is skipped and counted.
The result is {"scores": [...], "num_scored": n, "num_skipped_observations": k}, with null
for a sample that no batch has reached.

)" + describe_scores() +
      R"(
Example:
  tamis replay trace.json --score batch-loss --alpha 0.7 --out scores.json
)");
  command.callback([arguments] { replay(*arguments); });
}

}  // namespace tamis::program
