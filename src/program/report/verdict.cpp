#include "program/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runs/equal_budget.h"

namespace tamis::program {

namespace {

using runs::Metric;
using runs::MetricFormat;
using runs::Summary;
using runs::SummaryRow;

std::string percent(double fraction, int decimals = 2) {
  return fmt::format("{:.{}f} %", 100.0 * fraction, decimals);
}

std::string number_of(std::size_t number, const std::string& noun) {
  return number == 1 ? fmt::format("one {}", noun) : fmt::format("{} {}s", number, noun);
}

using Rows = std::vector<const SummaryRow*>;

// The rows that are compared with the baseline, by what their seeds support.
struct Findings {
  const SummaryRow* baseline = nullptr;
  Rows within_noise;
  Rows worse;
  Rows better;
  Rows not_judged;  // too few seeds
  // Finished, but no seed of theirs is among the baseline's.
  Rows unpaired;
};

Findings sort_findings(const Summary& summary) {
  Findings findings;
  for (const SummaryRow& row : summary.rows) {
    if (row.runs.empty()) continue;
    if (row.label == summary.baseline) {
      findings.baseline = &row;
    } else if (!row.difference) {
      findings.unpaired.push_back(&row);
    } else if (!row.difference->is_judged()) {
      findings.not_judged.push_back(&row);
    } else if (!row.difference->is_supported) {
      findings.within_noise.push_back(&row);
    } else {
      const bool is_better = summary.metric.is_better(row.difference->mean);
      (is_better ? findings.better : findings.worse).push_back(&row);
    }
  }
  return findings;
}

std::vector<std::string> labels_of(const Rows& rows) {
  std::vector<std::string> labels;
  labels.reserve(rows.size());
  for (const SummaryRow* row : rows) labels.push_back(row->label);
  return labels;
}

const char* is_or_are(const Rows& rows) { return rows.size() == 1 ? "is" : "are"; }

std::string setting_sentence(const ReportComparison& comparison, const SummaryRow& baseline) {
  const auto& methods = comparison.table.methods;
  const auto method = std::find_if(methods.begin(), methods.end(),
                                   [&](const auto& one) { return one.label == baseline.label; });
  const runs::RunData& run = method->runs.front();
  const runs::Json model = run.config.value("model", runs::Json::object());
  return fmt::format(
      "On {}{}, {} and {}, {} reached a {} of {}.", run.config["data"]["name"].get<std::string>(),
      model.empty() ? "" : " with " + model["name"].get<std::string>(),
      number_of(run.num_epochs, "epoch"), number_of(baseline.runs.size(), "seed"), baseline.label,
      comparison.summary.metric.title(), comparison.summary.format().value(*baseline.mean));
}

std::string noise_sentence(const Findings& findings) {
  const auto& rows = findings.within_noise;
  return fmt::format("{} {} within noise of {}: the 95 % interval of {} difference includes zero.",
                     enumerate(labels_of(rows)), is_or_are(rows), findings.baseline->label,
                     rows.size() == 1 ? "the" : "each");
}

std::string supported_sentence(const SummaryRow& row, const Summary& summary) {
  const runs::Difference& difference = *row.difference;
  const MetricFormat format = summary.format();
  const double near = std::min(std::abs(*difference.low), std::abs(*difference.high));
  const double far = std::max(std::abs(*difference.low), std::abs(*difference.high));
  return fmt::format("{} is {} than {} by {} (95 % interval {} to {}).", row.label,
                     summary.metric.is_better(difference.mean) ? "better" : "worse",
                     summary.baseline, format.distance(difference.mean), format.number(near),
                     format.number(far));
}

std::string not_judged_sentence(const Findings& findings, const Summary& summary) {
  const MetricFormat format = summary.format();
  const std::string& unit = format.difference_unit();
  std::vector<std::string> parts;
  for (const SummaryRow* row : findings.not_judged) {
    std::string number = format.signed_number(row->difference->mean);
    if (number.front() == '-') number.replace(0, 1, "−");
    parts.push_back(fmt::format("{} {}{}{}", row->label, number, unit.empty() ? "" : " ", unit));
  }
  const bool has_few_seeds = std::any_of(
      findings.not_judged.begin(), findings.not_judged.end(),
      [](const SummaryRow* row) { return row->difference->num_pairs < runs::kLeastSeeds; });
  return fmt::format("With {} a difference to {} cannot be told from noise: {}.",
                     has_few_seeds ? "fewer than three seeds" : "seeds that change nothing",
                     summary.baseline, enumerate(parts));
}

// The most that the interval allows the method to be worse by; empty if it allows nothing worse.
std::string allowance(const SummaryRow& row, const Summary& summary) {
  const bool is_higher_better = summary.metric.direction == runs::Direction::higher;
  const auto& worst = is_higher_better ? row.difference->low : row.difference->high;
  const bool allows_worse = worst && *worst != 0.0 && !summary.metric.is_better(*worst);
  if (!row.difference->is_judged() || !allows_worse) return {};
  return fmt::format("; the interval still allows it to be worse by {}",
                     summary.format().distance(*worst));
}

// The largest saving among the methods that are not shown to be worse.
std::string saving_sentence(const Findings& findings, const Summary& summary) {
  Rows candidates;
  for (const Rows* rows : {&findings.within_noise, &findings.better, &findings.not_judged}) {
    candidates.insert(candidates.end(), rows->begin(), rows->end());
  }
  std::erase_if(candidates, [](const SummaryRow* row) { return !row->time_saved; });
  constexpr const char* kNoneWithoutLoss = "No method saved training time without being worse.";
  if (candidates.empty()) return findings.worse.empty() ? "" : kNoneWithoutLoss;
  const SummaryRow& best = **std::max_element(
      candidates.begin(), candidates.end(),
      [](const SummaryRow* a, const SummaryRow* b) { return *a->time_saved < *b->time_saved; });
  if (!(*best.time_saved > 0.0)) {
    return findings.worse.empty() ? "No method saved training time." : kNoneWithoutLoss;
  }
  const std::string caution =
      best.saves_more_than_pruned()
          ? fmt::format(" Pruning cannot save more than it prunes: something else slowed {} down.",
                        summary.baseline)
          : "";
  return fmt::format("{}{} {} training time: {} less than {}, with {} of the samples pruned{}.{}",
                     findings.worse.empty() ? "" : "Of the methods not shown to be worse, ",
                     best.label, candidates.size() == 1 ? "took less" : "saved the most",
                     percent(*best.time_saved, 1), summary.baseline, percent(*best.pruned_share, 1),
                     allowance(best, summary), caution);
}

// Whether choosing samples by a score was worth more than training on as few without choosing.
std::vector<std::string> budget_sentences(const Summary& summary) {
  const MetricFormat format = summary.format();
  const std::string& unit = format.difference_unit();
  std::vector<std::string> sentences;
  for (const SummaryRow& row : summary.rows) {
    const std::string judgement = runs::budget_text(row, summary.metric);
    if (judgement == "yes") {
      std::vector<std::string> beaten;
      for (const auto& [label, difference] : row.equal_budget) beaten.push_back(label);
      sentences.push_back(fmt::format("{} beats {}, which trained on no more samples.", row.label,
                                      enumerate(beaten)));
    }
    if (judgement != "no") continue;
    const std::vector<std::string> labels = runs::unbeaten(row, summary.metric);
    std::vector<std::string> parts;
    for (const auto& [label, difference] : row.equal_budget) {
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) continue;
      parts.push_back(fmt::format("{} ({}{}{}, 95 % interval {} to {})", label,
                                  format.signed_number(difference.mean), unit.empty() ? "" : " ",
                                  unit, format.signed_number(*difference.low),
                                  format.signed_number(*difference.high)));
    }
    sentences.push_back(fmt::format("{} is not shown to beat {}, which trained on no more samples.",
                                    row.label, enumerate(parts)));
  }
  return sentences;
}

// "bls-infobatch reached 90.00 % in 61.3 % of the time of full."
std::string reach_sentence(const Summary& summary) {
  if (!summary.reach_value) return {};
  std::vector<std::string> parts;
  for (const SummaryRow& row : summary.rows) {
    if (!row.reach || row.label == summary.baseline) continue;
    const std::string seeds =
        row.reach->num_reached < row.runs.size()
            ? fmt::format(" ({} of {} seeds)", row.reach->num_reached, row.runs.size())
            : "";
    if (row.reach->num_reached == 0) {
      parts.push_back(fmt::format("{} not at all", row.label));
    } else if (row.reach->share_of_baseline) {
      parts.push_back(
          fmt::format("{} in {}{}", row.label, percent(*row.reach->share_of_baseline, 1), seeds));
    }
  }
  if (parts.empty()) return {};
  return fmt::format("A {} of {} was reached, of the time that {} took to reach it, by {}.",
                     summary.metric.title(), summary.format().value(*summary.reach_value),
                     summary.baseline, enumerate(parts));
}

std::string overhead_sentence(const Summary& summary) {
  double most = -1.0;
  for (const SummaryRow& row : summary.rows) {
    if (row.label != summary.baseline) most = std::max(most, row.prune_overhead.value_or(-1.0));
  }
  if (most < 0.0) return {};
  if (most < 0.0001) return "Pruning itself took less than 0.01 % of the training time.";
  return fmt::format("Pruning itself took at most {} of the training time.", percent(most));
}

std::vector<std::string> without_baseline(const Summary& summary) {
  std::vector<std::string> values;
  for (const SummaryRow& row : summary.rows) {
    if (row.mean) {
      values.push_back(fmt::format("{} {}", row.label, summary.format().value(*row.mean)));
    }
  }
  if (values.empty()) return {"No run has finished yet, so there is nothing to compare."};
  return {
      summary.baseline.empty()
          ? "There is no run on the full data to compare with, so no difference is judged."
          : fmt::format("{} has not finished, so no difference is judged yet.", summary.baseline),
      fmt::format("Mean {} after the last epoch: {}.", summary.metric.title(), enumerate(values))};
}

}  // namespace

std::string enumerate(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (k > 0) text += k + 1 == names.size() ? " and " : ", ";
    text += names[k];
  }
  return text;
}

std::vector<std::string> verdict(const ReportComparison& comparison) {
  const Summary& summary = comparison.summary;
  const Findings findings = sort_findings(summary);
  if (findings.baseline == nullptr) return without_baseline(summary);

  std::vector<std::string> sentences = {setting_sentence(comparison, *findings.baseline)};
  if (!findings.within_noise.empty()) sentences.push_back(noise_sentence(findings));
  for (const Rows* supported : {&findings.worse, &findings.better}) {
    for (const SummaryRow* row : *supported) {
      sentences.push_back(supported_sentence(*row, summary));
    }
  }
  if (!findings.not_judged.empty()) sentences.push_back(not_judged_sentence(findings, summary));
  if (!findings.unpaired.empty()) {
    sentences.push_back(fmt::format("{} {} not compared: no finished seed in common with {}.",
                                    enumerate(labels_of(findings.unpaired)),
                                    is_or_are(findings.unpaired), summary.baseline));
  }
  for (std::string& sentence : budget_sentences(summary)) sentences.push_back(std::move(sentence));
  sentences.push_back(saving_sentence(findings, summary));
  sentences.push_back(reach_sentence(summary));
  sentences.push_back(overhead_sentence(summary));
  std::erase(sentences, "");
  return sentences;
}

}  // namespace tamis::program
