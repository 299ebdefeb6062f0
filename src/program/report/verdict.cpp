#include "program/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tamis::program {

namespace {

// Percentage points of accuracy, without a sign: "0.61".
std::string points(double fraction) { return fmt::format("{:.2f}", std::abs(100.0 * fraction)); }

std::string signed_points(double fraction) {
  std::string text = points(fraction);
  if (text == "0.00") return text;
  return fmt::format("{}{}", fraction < 0.0 ? "−" : "+", text);
}

std::string counted(std::size_t number, const std::string& noun) {
  return number == 1 ? fmt::format("one {}", noun) : fmt::format("{} {}s", number, noun);
}

// The rows that are compared with the baseline, by what their seeds support.
struct Findings {
  const MethodSummary* baseline = nullptr;
  std::vector<const MethodSummary*> within_noise;
  std::vector<const MethodSummary*> below;
  std::vector<const MethodSummary*> above;
  std::vector<const MethodSummary*> single;
  // Finished, but no seed of theirs is among the baseline's.
  std::vector<const MethodSummary*> unpaired;
};

Findings sort_findings(const Comparison& comparison, const std::vector<MethodSummary>& rows) {
  Findings findings;
  for (const MethodSummary& row : rows) {
    if (row.num_finished == 0) continue;
    if (row.label == comparison.baseline) {
      findings.baseline = &row;
    } else if (!row.difference) {
      findings.unpaired.push_back(&row);
    } else if (row.difference->num_pairs < 2) {
      findings.single.push_back(&row);
    } else if (!row.difference->is_supported) {
      findings.within_noise.push_back(&row);
    } else {
      (row.difference->mean < 0.0 ? findings.below : findings.above).push_back(&row);
    }
  }
  return findings;
}

std::vector<std::string> labels_of(const std::vector<const MethodSummary*>& rows) {
  std::vector<std::string> labels;
  labels.reserve(rows.size());
  for (const MethodSummary* row : rows) labels.push_back(row->label);
  return labels;
}

const char* is_or_are(const std::vector<const MethodSummary*>& rows) {
  return rows.size() == 1 ? "is" : "are";
}

std::string setting_sentence(const Comparison& comparison, const MethodSummary& baseline) {
  const auto method =
      std::find_if(comparison.methods.begin(), comparison.methods.end(),
                   [&](const MethodRuns& one) { return one.label == baseline.label; });
  const Run& run = method->runs.front();
  return fmt::format("On {} with {}, {} and {}, {} reached a test accuracy of {}.",
                     run.config["data"]["name"].get<std::string>(),
                     run.config["model"]["name"].get<std::string>(),
                     counted(run.num_epochs, "epoch"), counted(baseline.num_finished, "seed"),
                     baseline.label, percent(*baseline.accuracy_mean));
}

std::string noise_sentence(const Findings& findings) {
  const auto& rows = findings.within_noise;
  return fmt::format("{} {} within noise of {}: the 95 % interval of {} difference includes zero.",
                     enumerate(labels_of(rows)), is_or_are(rows), findings.baseline->label,
                     rows.size() == 1 ? "the" : "each");
}

std::string supported_sentence(const MethodSummary& row, const std::string& baseline) {
  const AccuracyDifference& difference = *row.difference;
  const bool is_below = difference.mean < 0.0;
  return fmt::format("{} is {} {} by {} points (95 % interval {} to {}).", row.label,
                     is_below ? "below" : "above", baseline, points(difference.mean),
                     points(is_below ? *difference.high : *difference.low),
                     points(is_below ? *difference.low : *difference.high));
}

std::string single_sentence(const Findings& findings) {
  std::vector<std::string> parts;
  for (const MethodSummary* row : findings.single) {
    parts.push_back(fmt::format("{} {} points", row->label, signed_points(row->difference->mean)));
  }
  return fmt::format("From one seed a difference to {} cannot be told from noise: {}.",
                     findings.baseline->label, enumerate(parts));
}

// The largest saving among the methods that are not shown to be worse.
std::string saving_sentence(const Findings& findings) {
  std::vector<const MethodSummary*> candidates;
  for (const auto* rows : {&findings.within_noise, &findings.above, &findings.single}) {
    candidates.insert(candidates.end(), rows->begin(), rows->end());
  }
  std::erase_if(candidates, [](const MethodSummary* row) { return !row->time_saved; });
  if (candidates.empty()) {
    return findings.below.empty() ? ""
                                  : "No method saved time without a supported loss of accuracy.";
  }
  const MethodSummary& best = **std::max_element(
      candidates.begin(), candidates.end(), [](const MethodSummary* a, const MethodSummary* b) {
        return *a->time_saved < *b->time_saved;
      });
  if (!(*best.time_saved > 0.0)) {
    return findings.below.empty() ? "No method saved training time."
                                  : "No method saved time without a supported loss of accuracy.";
  }
  const char* const claim = candidates.size() == 1 ? "took less" : "saved the most";
  std::string text = fmt::format(
      "{}{} {} training time: {} less than {}, with {} of the samples pruned",
      findings.below.empty() ? "" : "Of the methods not shown to be worse, ", best.label, claim,
      percent(*best.time_saved, 1), findings.baseline->label, percent(*best.pruned_share, 1));
  if (best.difference->low && *best.difference->low < 0.0) {
    text += fmt::format("; the interval still allows a loss of up to {} points",
                        points(*best.difference->low));
  }
  return text + ".";
}

std::string overhead_sentence(const std::vector<MethodSummary>& rows, const Findings& findings) {
  double most = -1.0;
  for (const MethodSummary& row : rows) {
    if (&row != findings.baseline && row.prune_overhead) most = std::max(most, *row.prune_overhead);
  }
  if (most < 0.0) return {};
  if (most < 0.0001) return "Pruning itself took less than 0.01 % of the training time.";
  return fmt::format("Pruning itself took at most {} of the training time.", percent(most));
}

std::vector<std::string> without_baseline(const Comparison& comparison,
                                          const std::vector<MethodSummary>& rows) {
  std::vector<std::string> accuracies;
  for (const MethodSummary& row : rows) {
    if (row.accuracy_mean) {
      accuracies.push_back(fmt::format("{} {}", row.label, percent(*row.accuracy_mean)));
    }
  }
  if (accuracies.empty()) return {"No run has finished yet, so there is nothing to compare."};
  return {comparison.baseline.empty()
              ? "There is no run on the full data to compare with, so no difference is judged."
              : fmt::format("{} has not finished, so no difference is judged yet.",
                            comparison.baseline),
          fmt::format("Mean test accuracy after the last epoch: {}.", enumerate(accuracies))};
}

}  // namespace

std::string percent(double fraction, int decimals) {
  return fmt::format("{:.{}f} %", 100.0 * fraction, decimals);
}

std::string enumerate(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (k > 0) text += k + 1 == names.size() ? " and " : ", ";
    text += names[k];
  }
  return text;
}

std::vector<std::string> verdict(const Comparison& comparison,
                                 const std::vector<MethodSummary>& rows) {
  const Findings findings = sort_findings(comparison, rows);
  if (findings.baseline == nullptr) return without_baseline(comparison, rows);
  const std::string& baseline = findings.baseline->label;

  std::vector<std::string> sentences = {setting_sentence(comparison, *findings.baseline)};
  if (!findings.within_noise.empty()) sentences.push_back(noise_sentence(findings));
  for (const auto* supported : {&findings.below, &findings.above}) {
    for (const MethodSummary* row : *supported) {
      sentences.push_back(supported_sentence(*row, baseline));
    }
  }
  if (!findings.single.empty()) sentences.push_back(single_sentence(findings));
  if (!findings.unpaired.empty()) {
    sentences.push_back(fmt::format("{} {} not compared: no finished seed in common with {}.",
                                    enumerate(labels_of(findings.unpaired)),
                                    is_or_are(findings.unpaired), baseline));
  }
  sentences.push_back(saving_sentence(findings));
  sentences.push_back(overhead_sentence(rows, findings));
  std::erase(sentences, "");
  return sentences;
}

}  // namespace tamis::program
