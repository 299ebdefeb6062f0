#include "core/plan/planner.h"

#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "core/plan/class_floor.h"
#include "core/plan/target_ratio.h"
#include "core/plan/weight_groups.h"

namespace tamis::detail {

Planner::Planner(PrunerOptions& options, const Policy& policy, const Schedule& schedule,
                 std::uint64_t first, std::size_t size)
    : policy_(&policy),
      schedule_(schedule),
      seed_(options.seed),
      homogeneous_batch_size_(options.homogeneous_batch_size),
      min_per_class_(options.min_per_class),
      target_prune_(options.target_prune) {
  require(min_per_class_ >= 0.0 && min_per_class_ <= 1.0, "Pruner", "min_per_class", "in [0, 1]",
          min_per_class_);
  if (min_per_class_ > 0.0) {
    require(options.labels.size() == options.num_samples, "Pruner", "labels for min_per_class",
            "as many as samples", options.labels.size());
  } else {
    options.labels.clear();
  }
  if (target_prune_) check_target(*target_prune_);
  class_sizes_ = number_classes(options.labels);
  if (!options.labels.empty()) labels_ = std::span(options.labels).subspan(first, size);
}

std::uint64_t Planner::num_ratio_epochs() const {
  return policy_->prunes_when_annealing() ? schedule_.num_epochs : schedule_.num_pruned_epochs();
}

void Planner::check_target(double target) const {
  require(target >= 0.0 && target < 1.0, "Pruner", "target_prune", "in [0, 1)", target);
  const double max_ratio = policy_->max_prune_ratio();
  if (max_ratio == 0.0) {
    throw std::invalid_argument(concat("Pruner: target_prune must be unset for policy ",
                                       policy_->spec().name, ", whose ratio cannot change, got ",
                                       target));
  }
  const std::uint64_t num_pruned = num_ratio_epochs();
  const double most =
      max_ratio * static_cast<double>(num_pruned) / static_cast<double>(schedule_.num_epochs);
  require(target <= most, "Pruner", "target_prune",
          concat("at most ", most, " (a prune_ratio of ", max_ratio, " in ", num_pruned, " of ",
                 schedule_.num_epochs, " epochs)"),
          target);
}

Selection Planner::select(const PlanView& scores, std::uint64_t epoch, const RunSoFar& run) const {
  const PolicyInput input{.scores = scores, .epoch = epoch, .seed = seed_};
  const bool follows_target =
      target_prune_ && (schedule_.is_pruned(epoch) || policy_->prunes_when_annealing());
  return follows_target ? select_for_target(scores, input, run) : select_once(scores, input);
}

Selection Planner::select_once(const PlanView& scores, const PolicyInput& input) const {
  Selection selection =
      schedule_.is_pruned(input.epoch) ? policy_->select(input) : policy_->anneal(input);
  std::uint64_t num_restored = 0;
  if (min_per_class_ > 0.0) {
    const ClassDraws draws = draw_classes(scores, labels_, class_sizes_, min_per_class_, selection);
    if (draws.num_restored > 0) scores.restore(draws, seed_, input.epoch, selection);
    num_restored += draws.num_restored;
  }
  if (homogeneous_batch_size_ > 0) {
    RandomStream random(part_seed(seed_, scores.first()), input.epoch, Purpose::whole_batches);
    num_restored += fill_batches(scores, homogeneous_batch_size_, random, selection);
  }
  if (num_restored > 0) selection.report.num_restored = num_restored;
  return selection;
}

Selection Planner::select_for_target(const PlanView& scores, PolicyInput input,
                                     const RunSoFar& run) const {
  const auto count = [](std::uint64_t number) { return static_cast<double>(number); };
  const double num_samples = count(scores.num_samples());
  const double all = num_samples * count(schedule_.num_epochs);
  const double num_pruned =
      num_samples * count(run.num_epochs_started) - count(run.num_samples_planned);
  const double epochs_left = count(num_ratio_epochs() - input.epoch);
  const double wanted = (*target_prune_ * all - num_pruned) / epochs_left;
  auto choice = choose_ratio(scores, wanted, policy_->max_prune_ratio(), [&](double ratio) {
    input.prune_ratio = ratio;
    return select_once(scores, input);
  });
  SelectionReport& report = choice.selection.report;
  report.prune_ratio = choice.prune_ratio;
  const auto share_with = [&](double per_epoch, double epochs) {
    return (num_pruned + epochs * per_epoch) / all;
  };
  report.lowest_reachable = share_with(count(choice.least_pruned), epochs_left);
  // Where nothing can be pruned yet, later epochs may still do what they can.
  report.highest_reachable =
      choice.most_pruned > 0
          ? share_with(count(choice.most_pruned), epochs_left)
          : share_with(policy_->max_prune_ratio() * num_samples, epochs_left - 1.0);
  return std::move(choice.selection);
}

}  // namespace tamis::detail
