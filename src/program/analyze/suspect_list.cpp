#include "program/analyze/suspect_list.h"

#include <algorithm>
#include <cmath>

#include "program/analyze/score_replay.h"
#include "runs/spec_json.h"
#include "tamis/pruner.h"

namespace tamis::program {

namespace {

using analysis::Hardness;
using analysis::HardnessRanking;
using runs::Json;

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

}  // namespace

std::optional<Spec> best_score(const Recording& recording) {
  bool has_norms = false;
  bool has_losses = false;
  recording.read([&](const RecordedStep& step) {
    has_norms = has_norms || !step.norms.empty();
    has_losses = has_losses || std::any_of(step.losses.begin(), step.losses.end(),
                                           [](float loss) { return std::isfinite(loss); });
  });
  const bool has_all_losses = has_losses && recording.samples().size() == recording.num_samples();
  if (has_norms && !has_all_losses) return gradient_score(recording);
  if (has_losses) return Spec{"sample-loss"};
  return std::nullopt;
}

SuspectList suspects_of_recording(const Recording& recording, const Spec& score,
                                  std::size_t count) {
  SuspectList suspects;
  suspects.num_samples = recording.num_samples();
  // The ranking, the score with its copies, and what is ranked once it is put in order.
  constexpr double kBytesPerSample = 24.0 + 32.0 + 104.0;
  require_memory_for(suspects.num_samples, kBytesPerSample, recording.folder().native());
  HardnessRanking ranking(recording.num_samples());
  replay_epochs(recording, score, [&](std::uint64_t epoch, const ScoreReplay& replay) {
    suspects.score = replay.scorer().spec();
    suspects.epochs.push_back(epoch);
    ranking.add(replay.scores());
  });
  suspects.num_scored = ranking.num_scored();
  suspects.samples = ranking.hardest(count);
  suspects.curves.resize(suspects.samples.size());
  replay_epochs(recording, score, [&](std::uint64_t, const ScoreReplay& replay) {
    const std::vector<float> scores = replay.scores();
    for (std::size_t k = 0; k < suspects.samples.size(); ++k) {
      suspects.curves[k].push_back(scores[suspects.samples[k].sample]);
    }
  });
  return suspects;
}

SuspectList suspects_of_state(const std::string& path, std::size_t count) {
  const Pruner pruner = Pruner::from_file(path);
  HardnessRanking ranking(pruner.num_samples());
  ranking.add(pruner.scores());
  return {.score = *pruner.options().score,
          .num_samples = pruner.num_samples(),
          .num_scored = ranking.num_scored(),
          .epochs = {},
          .samples = ranking.hardest(count),
          .curves = {}};
}

std::size_t num_wrong_labels(const runs::SampleList& who) {
  std::size_t num_wrong = 0;
  for (std::size_t i = 0; i < who.labels.size(); ++i) num_wrong += who.is_wrong(i) ? 1 : 0;
  return num_wrong;
}

std::size_t count_wrong(const SuspectList& suspects) {
  return static_cast<std::size_t>(
      std::count_if(suspects.samples.begin(), suspects.samples.end(),
                    [&](const Hardness& one) { return suspects.who.is_wrong(one.sample); }));
}

Json to_json(const SuspectList& suspects) {
  const runs::SampleList& who = suspects.who;
  Json all = Json::array();
  for (std::size_t k = 0; k < suspects.samples.size(); ++k) {
    const Hardness& one = suspects.samples[k];
    Json entry = {{"sample", one.sample}};
    if (!who.indices.empty()) entry["index"] = who.indices[one.sample];
    if (!who.files.empty()) entry["file"] = who.files[one.sample];
    if (!who.labels.empty()) {
      entry["label"] = who.labels[one.sample];
      if (!who.classes.empty()) entry["class"] = who.class_name(who.labels[one.sample]);
    }
    if (!who.true_labels.empty()) {
      entry["true_label"] = who.true_labels[one.sample];
      if (!who.classes.empty()) entry["true_class"] = who.class_name(who.true_labels[one.sample]);
    }
    entry["score"] = one.score;
    entry["rank"] = one.rank;
    entry["hard_share"] = one.hard_share;
    entry["hard_in_a_row"] = one.num_hard_in_a_row;
    if (!suspects.curves.empty()) entry["scores"] = runs::short_numbers(suspects.curves[k], 9);
    all.push_back(std::move(entry));
  }
  Json json = {{"score", runs::spec_to_json(suspects.score)},
               {"num_samples", suspects.num_samples},
               {"num_scored", suspects.num_scored},
               {"epochs", suspects.epochs}};
  if (!who.true_labels.empty()) {
    json["wrong_labels"] = {{"here", count_wrong(suspects)}, {"in_all", num_wrong_labels(who)}};
  }
  json["suspects"] = all;
  return json;
}

}  // namespace tamis::program
