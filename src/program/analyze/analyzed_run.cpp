#include "program/analyze/analyzed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "program/analyze/score_replay.h"
#include "runs/run.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"

namespace tamis::program {

namespace {

namespace fs = std::filesystem;

constexpr const char* kBatchLoss = "batch-loss";

// What config.json and the saved state of a run tell; a recording alone has neither.
struct SavedRun {
  std::string name;
  std::optional<Pruner> pruner = std::nullopt;  // as the run left it
};

SavedRun read_facts(const fs::path& folder) {
  SavedRun facts{.name = folder.lexically_normal().string()};
  if (runs::is_run(folder)) {
    const runs::RunData run = runs::read_run(folder);
    facts.name = fmt::format("{} on {}", run.method, run.config["data"]["name"].get<std::string>());
  }
  if (const fs::path path = folder / "pruner.safetensors"; fs::exists(path)) {
    facts.pruner = Pruner::from_file(path);
  }
  return facts;
}

Spec choose_score(const AnalyzeOptions& options, const std::optional<Pruner>& pruner) {
  Spec score{kBatchLoss};
  if (pruner && pruner->options().score->name == kBatchLoss) score = *pruner->options().score;
  if (options.alpha) score.options["alpha"] = *options.alpha;
  return make_scorer(score, 1)->spec();
}

bool have_same_options(const Spec& a, const Spec& b) {
  return a.name == b.name && a.options.at("alpha") == b.options.at("alpha") &&
         (a.options.at("initial_score") == b.options.at("initial_score") ||
          (std::isnan(a.options.at("initial_score")) && std::isnan(b.options.at("initial_score"))));
}

// Empty if the signal can be analysed.
std::string why_no_signal(const RecordedVisits& visits) {
  if (std::find(visits.is_complete.begin(), visits.is_complete.end(), true) ==
      visits.is_complete.end()) {
    return "the per-sample losses are not in the recording: update() was given their mean";
  }
  if (visits.most_visits < kLeastVisits) {
    return fmt::format("no sample was visited {} times, which spectra need; the most is {}",
                       kLeastVisits, visits.most_visits);
  }
  return {};
}

std::size_t find_place(const Recording& recording, const RecordedVisits& visits,
                       std::optional<std::uint64_t> sample) {
  if (!sample) return typical_sample(visits);
  const auto samples = recording.samples();
  const auto found = std::lower_bound(samples.begin(), samples.end(), *sample);
  if (found == samples.end() || *found != *sample) {
    throw std::invalid_argument(
        fmt::format("analyze: sample must be a recorded one ({} of them, such as {}), got {}",
                    samples.size(), samples.front(), *sample));
  }
  const auto place = static_cast<std::size_t>(found - samples.begin());
  if (!visits.is_complete[place]) {
    throw std::invalid_argument(
        fmt::format("analyze: sample must have visits with a known loss, got {}", *sample));
  }
  return place;
}

// The scores that the run itself ended with, if it is this score and this step; else empty.
std::vector<float> saved_scores(const std::optional<Pruner>& pruner, const AnalyzedRun& run,
                                const Recording& recording) {
  if (!pruner || pruner->num_samples() != run.num_samples ||
      !have_same_options(*pruner->options().score, run.score) ||
      pruner->num_observations() + pruner->num_skipped_observations() != run.num_steps) {
    return {};
  }
  const std::vector<float> all = pruner->scores();
  std::vector<float> scores;
  for (const std::uint32_t sample : recording.samples()) scores.push_back(all[sample]);
  return scores;
}

void analyze_signal(const Recording& recording, const RecordedVisits& visits,
                    const AnalyzeOptions& options, const std::optional<Pruner>& pruner,
                    AnalyzedRun& run) {
  const double alpha = run.score.options.at("alpha");
  const double given = run.score.options.at("initial_score");
  const double initial = std::isnan(given) ? visits.first_batch_loss : given;
  run.signal = analyze_signal(visits, alpha);
  const std::size_t place = find_place(recording, visits, options.sample);
  run.series = {.sample = recording.samples()[place],
                .visits = visits.visits[place],
                .parts = analysis::decompose(visits.visits[place], alpha, initial)};
  const std::vector<float> saved = saved_scores(pruner, run, recording);
  run.is_checked_on_run = !saved.empty();
  run.check = check_decomposition(visits, alpha, initial,
                                  run.is_checked_on_run ? saved : run.fidelity.final_scores);
}

}  // namespace

AnalyzedRun analyze_run(const AnalyzeOptions& options) {
  if (!Recording::exists(options.run)) {
    throw std::runtime_error(fmt::format("{}: holds no recording; tamis train --record makes one",
                                         options.run.native()));
  }
  const Recording recording(options.run);
  require_memory_for(recording.num_samples(), kFidelityBytes, options.run.native());
  const SavedRun facts = read_facts(options.run);
  const RecordedVisits visits = read_visits(recording);
  AnalyzedRun run{.name = facts.name,
                  .num_samples = recording.num_samples(),
                  .num_recorded = recording.samples().size(),
                  .num_steps = visits.num_steps,
                  .num_skipped = visits.num_skipped,
                  .num_epochs = visits.epochs.back().epoch + 1,
                  .batch_size = visits.batch_size,
                  .score = choose_score(options, facts.pruner)};
  run.fidelity = measure_fidelity(recording, visits, run.score);
  run.why_no_signal = why_no_signal(visits);
  if (!run.why_no_signal.empty() && run.fidelity.epochs.empty()) {
    throw std::runtime_error(
        fmt::format("{}: nothing can be analysed: {}, and no true losses were recorded",
                    recording.folder().native(), run.why_no_signal));
  }
  if (run.why_no_signal.empty()) analyze_signal(recording, visits, options, facts.pruner, run);
  return run;
}

}  // namespace tamis::program
