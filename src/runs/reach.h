// Reach: how long a run takes until its headline has a stated value.
#pragma once

#include <optional>

#include "runs/run.h"
#include "runs/summary.h"

namespace tamis::runs {

// Seconds of training until the end of the first epoch whose headline is as good as `value`; empty
// if no epoch is. Scoring counts, evaluation does not. Seconds of the processor, which every epoch
// must then tell, or of the clock.
std::optional<double> seconds_to_reach(const RunData& run, double value, bool of_processor);

// Fills in `reach` of every row from its finished runs; the share of the baseline's time is the
// mean over the seeds that reach the value with both. Of the processor's time where `summary` has
// it.
void compare_reach(const RunTable& table, double value, Summary& summary);

}  // namespace tamis::runs
