// The tables of `tamis analyze`.
#include <fmt/format.h>

#include <cmath>

#include "program/analyze/analyzed_run.h"
#include "program/analyze/score_replay.h"
#include "program/shared/spec_flags.h"
#include "program/shared/table.h"
#include "tamis/method.h"

namespace tamis::program {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string number(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4g}", value); }
std::string decimals(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.3f}", value);
}
std::string percent(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

std::string facts_text(const AnalyzedRun& run) {
  FactList facts;
  facts.add("run", run.name);
  facts.add("recording",
            fmt::format("{} of {} samples, {}, {}, batches of {}{}", with_commas(run.num_recorded),
                        with_commas(run.num_samples), counted(run.num_steps, "step"),
                        counted(run.num_epochs, "epoch"), run.batch_size,
                        run.num_skipped > 0 ? fmt::format(", {} skipped", run.num_skipped) : ""));
  facts.add("score", to_text(run.score));
  return facts.text();
}

std::string spectra_text(const SpectrumAnalysis& spectra) {
  const auto& signal = spectra.signal_energy;
  const auto& noise = spectra.noise_energy;
  const double signal_power = signal.below + signal.above;
  const double noise_power = noise.below + noise.above;
  const Rows rows = {
      {"", "signal l/B", "noise L-l/B", "noise / signal"},
      {"power", number(signal_power), number(noise_power), number(noise_power / signal_power)},
      {fmt::format("below {:.4f}", spectra.cutoff), percent(signal.share_below()),
       percent(noise.share_below()), number(noise.below / signal.below)},
      {"above", percent(1.0 - signal.share_below()), percent(1.0 - noise.share_below()),
       number(noise.above / signal.above)}};
  const std::size_t last = spectra.num_frequencies();
  return fmt::format(
      "\nSpectra: means over {} samples, segments of {} visits; the filter's cut-off is {:.4f} "
      "cycles per visit\n{}"
      "The noise is above the signal at {} of {} frequencies: {} times at {:.4f}, {} times at "
      "{:.4f}.\n",
      with_commas(spectra.num_samples), spectra.segment_length, spectra.cutoff, format_table(rows),
      spectra.num_noise_above, last, number(spectra.ratio(1)), spectra.signal.frequencies[1],
      number(spectra.ratio(last)), spectra.signal.frequencies[last]);
}

std::string check_text(const AnalyzedRun& run) {
  return fmt::format(
      "\nDecomposition: filtered signal + filtered noise + initial term is the score {} to {:.1e} "
      "of it\n({} samples).\n",
      run.is_checked_on_run ? "that the run saved" : "as replayed", run.check->largest_error,
      with_commas(run.check->num_samples));
}

std::string ratios_text(const SignalAnalysis& signal, const Fidelity& fidelity) {
  const bool has_truth = !fidelity.epochs.empty();
  Rows rows = {{"alpha", "over visits", "between samples"}};
  if (has_truth) rows.front().emplace_back("Spearman");
  double best_spearman = -2.0;
  double best_alpha = 0.0;
  for (std::size_t k = 0; k < signal.after.size(); ++k) {
    const auto& ratio = signal.after[k];
    rows.push_back(
        {fmt::format("{}", ratio.alpha), number(ratio.over_visits), number(ratio.between_samples)});
    if (!has_truth) continue;
    const double spearman = fidelity.alphas[k].epochs.back().spearman;
    rows.back().push_back(decimals(spearman));
    if (spearman > best_spearman) {
      best_spearman = spearman;
      best_alpha = ratio.alpha;
    }
  }
  std::string text =
      fmt::format("\nSignal-to-noise ratio after the filter, by alpha (0 is no filter)\n{}",
                  format_table(rows));
  const auto say = [](const std::optional<double>& alpha) {
    return alpha ? fmt::format("{}", *alpha) : std::string("none");
  };
  text += fmt::format("Largest: alpha {} over visits, {} between samples",
                      say(signal.best_over_visits), say(signal.best_between_samples));
  if (has_truth) {
    text += fmt::format("; {} ranks the samples best (Spearman with the true loss)", best_alpha);
  }
  return text + ".\n";
}

std::string fidelity_text(const Fidelity& fidelity) {
  std::string text =
      fmt::format("\nFidelity: agreement of every score with the true loss ({})\n",
                  fidelity.is_measured ? "of all recorded samples, measured after the epoch"
                                       : "of each sample at its last visit");
  Rows rows = {{"score", "sees"}};
  // The first, the middle and the last: a terminal is narrow; --json has all of them.
  std::vector<std::size_t> shown = {0};
  for (const std::size_t k : {fidelity.epochs.size() / 2, fidelity.epochs.size() - 1}) {
    if (k != shown.back()) shown.push_back(k);
  }
  for (const std::size_t k : shown) {
    rows.front().push_back(fmt::format("Spearman, epoch {}", fidelity.epochs[k] + 1));
  }
  rows.front().emplace_back("Pearson");
  rows.front().push_back(fmt::format("top {:.0f} %", 100.0 * kTopShare));
  for (const ScoreFidelity& score : fidelity.scores) {
    auto& row = rows.emplace_back();
    row = {score.score.name, std::string(to_text(score.sees))};
    for (const std::size_t k : shown) row.push_back(decimals(score.epochs[k].spearman));
    row.push_back(decimals(score.epochs.back().pearson));
    const double overlap = score.epochs.back().top_overlap;
    row.push_back(std::isfinite(overlap) ? percent(overlap) : "-");
  }
  return text + format_table(rows) +
         fmt::format(
             "Pearson and the share of the highest {:.0f} % that score and loss have in common are "
             "of the last\nepoch shown. Chance gives 0, 0 and {:.0f} %.\n",
             100.0 * kTopShare, 100.0 * kTopShare);
}

}  // namespace

std::string to_text(const AnalyzedRun& run) {
  std::string text = facts_text(run);
  if (run.signal) {
    text += spectra_text(run.signal->spectra) + check_text(run) +
            ratios_text(*run.signal, run.fidelity);
  } else {
    text += fmt::format("\nNo spectra: {}.\n", run.why_no_signal);
  }
  return run.fidelity.epochs.empty() ? text : text + fidelity_text(run.fidelity);
}

}  // namespace tamis::program
