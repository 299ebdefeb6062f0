// Planner: what an epoch uses: the policy's choice and what the options of the plan make of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/plan_view.h"
#include "tamis/policy.h"
#include "tamis/pruner.h"
#include "tamis/schedule.h"

namespace tamis::detail {

// What target_prune needs to know of the epochs before, on all ranks.
struct RunSoFar {
  std::uint64_t num_epochs_started = 0;
  std::uint64_t num_samples_planned = 0;
};

class Planner {
 public:
  // For the samples [first, first + size) of the data set of `options`. Checks the options of the
  // plan and numbers the labels in `options` from 0, or drops them where they are not needed.
  // Throws std::invalid_argument. The policy and the memory of the labels must outlive the planner.
  Planner(PrunerOptions& options, const Policy& policy, const Schedule& schedule,
          std::uint64_t first, std::size_t size);

  // Collective if the scores are spread over ranks. A function of its arguments alone.
  Selection select(const PlanView& scores, std::uint64_t epoch, const RunSoFar& run) const;

 private:
  // Epochs from the first on in which the policy leaves samples out.
  std::uint64_t num_ratio_epochs() const;
  void check_target(double target) const;
  // The policy's choice, with what min_per_class and homogeneous batches put back.
  Selection select_once(const PlanView& scores, const PolicyInput& input) const;
  // The same with the prune_ratio that brings the run nearest to target_prune.
  Selection select_for_target(const PlanView& scores, PolicyInput input, const RunSoFar& run) const;

  const Policy* policy_;
  Schedule schedule_;
  std::uint64_t seed_;
  std::size_t homogeneous_batch_size_;
  double min_per_class_;
  std::optional<double> target_prune_;
  std::vector<std::size_t> class_sizes_;  // of the whole data set
  std::span<const std::int32_t> labels_;  // of samples [first, first + size)
};

}  // namespace tamis::detail
