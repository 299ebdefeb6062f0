// analysis.json.
#include "program/analyze/analyzed_run.h"
#include "program/analyze/score_replay.h"
#include "runs/spec_json.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;

ordered_json energy_json(const analysis::EnergySplit& energy) {
  return {{"power", energy.below + energy.above}, {"share_below", energy.share_below()}};
}

ordered_json spectra_json(const SpectrumAnalysis& spectra) {
  return {{"segment_length", spectra.segment_length},
          {"num_samples", spectra.num_samples},
          {"cutoff", spectra.cutoff},
          {"num_frequencies", spectra.num_frequencies()},
          {"num_noise_above", spectra.num_noise_above},
          {"signal_energy", energy_json(spectra.signal_energy)},
          {"noise_energy", energy_json(spectra.noise_energy)},
          {"frequencies", spectra.signal.frequencies},
          {"signal", spectra.signal.density},
          {"noise", spectra.noise.density}};
}

ordered_json optional_json(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json ratios_json(const SignalAnalysis& signal) {
  ordered_json after = ordered_json::array();
  for (const analysis::SignalToNoise& ratio : signal.after) {
    after.push_back({{"alpha", ratio.alpha},
                     {"over_visits", ratio.over_visits},
                     {"between_samples", ratio.between_samples}});
  }
  return {{"num_samples", signal.num_samples},
          {"before",
           {{"over_visits", signal.before.over_visits},
            {"between_samples", signal.before.between_samples}}},
          {"after", after},
          {"best_alpha_over_visits", optional_json(signal.best_over_visits)},
          {"best_alpha_between_samples", optional_json(signal.best_between_samples)}};
}

ordered_json series_json(const TimeSeries& series) {
  ordered_json batch_loss = ordered_json::array();
  ordered_json sample_loss = ordered_json::array();
  for (const analysis::Visit& visit : series.visits) {
    batch_loss.push_back(visit.batch_loss);
    sample_loss.push_back(visit.sample_loss);
  }
  const analysis::Decomposition& parts = series.parts;
  return {{"sample", series.sample},
          {"batch_loss", batch_loss},
          {"sample_loss", sample_loss},
          {"signal", parts.signal},
          {"noise", parts.noise},
          {"filtered_signal", parts.filtered_signal},
          {"filtered_noise", parts.filtered_noise},
          {"initial_term", parts.initial_term},
          {"score", parts.score}};
}

ordered_json fidelity_json(const std::vector<ScoreFidelity>& scores) {
  ordered_json all = ordered_json::array();
  for (const ScoreFidelity& score : scores) {
    ordered_json one = runs::spec_to_json(score.score);
    one["sees"] = to_text(score.sees);
    ordered_json spearman = ordered_json::array();
    ordered_json pearson = ordered_json::array();
    ordered_json overlap = ordered_json::array();
    ordered_json num_scored = ordered_json::array();
    for (const Agreement& agreement : score.epochs) {
      spearman.push_back(agreement.spearman);
      pearson.push_back(agreement.pearson);
      overlap.push_back(agreement.top_overlap);
      num_scored.push_back(agreement.num_scored);
    }
    one["spearman"] = spearman;
    one["pearson"] = pearson;
    one["top_overlap"] = overlap;
    one["num_scored"] = num_scored;
    all.push_back(one);
  }
  return all;
}

}  // namespace

ordered_json to_json(const AnalyzedRun& run) {
  ordered_json json = {{"format", "tamis-analysis"},
                       {"format_version", 1},
                       {"name", run.name},
                       {"recording",
                        {{"num_samples", run.num_samples},
                         {"num_recorded", run.num_recorded},
                         {"num_steps", run.num_steps},
                         {"num_skipped", run.num_skipped},
                         {"num_epochs", run.num_epochs},
                         {"batch_size", run.batch_size}}},
                       {"score", runs::spec_to_json(run.score)},
                       {"spectra", nullptr},
                       {"signal_to_noise", nullptr},
                       {"decomposition", nullptr},
                       {"series", nullptr},
                       {"why_no_signal", run.why_no_signal}};
  if (run.signal) {
    json["spectra"] = spectra_json(run.signal->spectra);
    json["signal_to_noise"] = ratios_json(*run.signal);
    json["decomposition"] = {{"num_samples", run.check->num_samples},
                             {"largest_error", run.check->largest_error},
                             {"scores", run.is_checked_on_run ? "saved by the run" : "replayed"}};
    json["series"] = series_json(*run.series);
  }
  json["fidelity"] = {{"truth", run.fidelity.is_measured ? "measured" : "last visit"},
                      {"top_share", kTopShare},
                      {"epochs", run.fidelity.epochs},
                      {"scores", fidelity_json(run.fidelity.scores)},
                      {"alphas", fidelity_json(run.fidelity.alphas)}};
  return json;
}

}  // namespace tamis::program
