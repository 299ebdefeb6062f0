#include "tamis/schedule.h"

#include "base/check.h"
#include "base/rounding.h"

namespace tamis {

std::uint64_t Schedule::num_pruned_epochs() const { return detail::floor_share(delta, num_epochs); }

void validate(const Schedule& schedule) {
  // No more: the samples of all epochs are counted in 64 bits, and shares of the epochs in doubles.
  detail::require(schedule.num_epochs >= 1 && schedule.num_epochs <= 0xFFFF'FFFF, "Schedule",
                  "num_epochs", "in [1, 4294967295]", schedule.num_epochs);
  detail::require(schedule.delta >= 0.0 && schedule.delta <= 1.0, "Schedule", "delta", "in [0, 1]",
                  schedule.delta);
}

}  // namespace tamis
