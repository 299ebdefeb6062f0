#include "runs/equal_budget.h"

#include <algorithm>

namespace tamis::runs {

namespace {

// Of the pruned share, by which two runs may differ and still count as equally expensive.
constexpr double kTolerance = 0.01;

bool is_beaten(const Difference& difference, const Metric& metric) {
  return difference.is_supported && metric.is_better(difference.mean);
}

}  // namespace

bool is_budget_baseline(const RunData& run) {
  if (run.num_full_epochs > run.num_epochs) return true;
  const Json::json_pointer policy("/method/policy/name");
  // A program of another kind may give the method's name alone.
  const std::string name = run.config.contains(policy) && run.config[policy].is_string()
                               ? run.config[policy].get<std::string>()
                               : run.method;
  return name.substr(0, name.find(':')) == "random-dynamic";
}

void compare_budgets(const std::vector<bool>& is_baseline, Summary& summary) {
  for (std::size_t k = 0; k < summary.rows.size(); ++k) {
    SummaryRow& row = summary.rows[k];
    row.is_budget_baseline = is_baseline[k];
    if (is_baseline[k] || row.pruned_share.value_or(0.0) < kTolerance) continue;
    for (std::size_t other = 0; other < summary.rows.size(); ++other) {
      const SummaryRow& baseline = summary.rows[other];
      if (!is_baseline[other] ||
          baseline.pruned_share.value_or(0.0) < *row.pruned_share - kTolerance) {
        continue;
      }
      if (const auto difference = paired_difference(summary, row, baseline)) {
        row.equal_budget.push_back({baseline.label, *difference});
      }
    }
  }
}

std::string budget_text(const SummaryRow& row, const Metric& metric) {
  if (row.equal_budget.empty()) return "-";
  const bool is_judged =
      std::all_of(row.equal_budget.begin(), row.equal_budget.end(),
                  [](const BudgetDifference& one) { return one.difference.is_judged(); });
  if (!is_judged) return "not judged";
  return unbeaten(row, metric).empty() ? "yes" : "no";
}

std::vector<std::string> unbeaten(const SummaryRow& row, const Metric& metric) {
  std::vector<std::string> labels;
  for (const auto& [label, difference] : row.equal_budget) {
    if (!is_beaten(difference, metric)) labels.push_back(label);
  }
  return labels;
}

}  // namespace tamis::runs
