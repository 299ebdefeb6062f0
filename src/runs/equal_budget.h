// Equal budget: what a method is worth beyond training on fewer samples.
#pragma once

#include <string>
#include <vector>

#include "runs/run.h"
#include "runs/summary.h"

namespace tamis::runs {

// True if the run only trains on fewer samples, without any choice among them: fewer epochs of the
// full data, or random-dynamic. What these reach, pruning by a score must beat.
bool is_budget_baseline(const RunData& run);

// Compares every row that prunes with the budget baselines that trained on no more samples than it
// did (one point of the pruned share is tolerated). `is_baseline` has one entry per row.
void compare_budgets(const std::vector<bool>& is_baseline, Summary& summary);

// What the seeds say about a row: "yes", it is better than each of them; "no"; "not judged" with
// too few seeds; "-" if there is nothing to compare with.
std::string budget_text(const SummaryRow& row, const Metric& metric);

// The baselines that the row is not shown to be better than.
std::vector<std::string> unbeaten(const SummaryRow& row, const Metric& metric);

}  // namespace tamis::runs
