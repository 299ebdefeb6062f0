#include "runs/reach.h"

#include <map>
#include <vector>

namespace tamis::runs {

namespace {

using SecondsBySeed = std::map<std::uint64_t, double>;

SecondsBySeed seconds_of(const RunTable& table, const std::string& label, double value,
                         bool of_processor) {
  SecondsBySeed seconds;
  for (const MethodRuns& method : table.methods) {
    if (method.label != label) continue;
    for (const RunData& run : method.runs) {
      if (!run.is_finished()) continue;
      if (const auto time = seconds_to_reach(run, value, of_processor)) seconds[run.seed] = *time;
    }
  }
  return seconds;
}

}  // namespace

std::optional<double> seconds_to_reach(const RunData& run, double value, bool of_processor) {
  const Metric& headline = run.headline();
  double seconds = 0.0;
  for (const EpochMetrics& epoch : run.epochs) {
    seconds += of_processor ? epoch.processor_seconds.value() : epoch.train_seconds;
    const double reached = epoch.value(headline);
    // NaN, where it was not measured, is no better and not equal.
    if (reached == value || headline.is_better(reached - value)) return seconds;
  }
  return std::nullopt;
}

void compare_reach(const RunTable& table, double value, Summary& summary) {
  summary.reach_value = value;
  const bool of_processor = summary.has_processor_time;
  const SecondsBySeed baseline = seconds_of(table, table.baseline, value, of_processor);
  for (SummaryRow& row : summary.rows) {
    if (row.runs.empty()) continue;
    const SecondsBySeed own = seconds_of(table, row.label, value, of_processor);
    Reach reach{.num_reached = own.size()};
    std::vector<double> times;
    std::vector<double> shares;
    for (const auto& [seed, seconds] : own) {
      times.push_back(seconds);
      const auto partner = baseline.find(seed);
      if (partner != baseline.end() && partner->second > 0.0) {
        shares.push_back(seconds / partner->second);
      }
    }
    if (!times.empty()) reach.seconds = analysis::mean(times);
    if (!shares.empty()) reach.share_of_baseline = analysis::mean(shares);
    row.reach = reach;
  }
}

}  // namespace tamis::runs
