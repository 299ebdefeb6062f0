#include "tamis/pruner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "core/plan/class_floor.h"
#include "core/plan/target_ratio.h"
#include "core/plan/weight_groups.h"
#include "core/policies/score_statistics.h"
#include "tamis/registry.h"

namespace tamis {

namespace {

void check_num_samples(std::size_t num_samples) {
  detail::require(num_samples >= 1 && num_samples <= std::numeric_limits<std::uint32_t>::max(),
                  "Pruner", "num_samples", "in [1, 2^32 - 1]", num_samples);
}

std::unique_ptr<Scorer> make_scorer_for(const PrunerOptions& options) {
  check_num_samples(options.num_samples);
  const Spec default_score{std::string(find_policy(options.policy.name).default_score)};
  return make_scorer(options.score.value_or(default_score), options.num_samples);
}

// Epochs from the first on in which the policy leaves samples out.
std::uint64_t num_ratio_epochs(const Policy& policy, const Schedule& schedule) {
  return policy.prunes_when_annealing() ? schedule.num_epochs : schedule.num_pruned_epochs();
}

void check_added_options(const PrunerOptions& options, const Policy& policy,
                         const Schedule& schedule) {
  const double share = options.min_per_class;
  detail::require(share >= 0.0 && share <= 1.0, "Pruner", "min_per_class", "in [0, 1]", share);
  if (share > 0.0) {
    detail::require(options.labels.size() == options.num_samples, "Pruner",
                    "labels for min_per_class", "as many as samples", options.labels.size());
  }
  if (!options.target_prune) return;
  const double target = *options.target_prune;
  detail::require(target >= 0.0 && target < 1.0, "Pruner", "target_prune", "in [0, 1)", target);
  const double max_ratio = policy.max_prune_ratio();
  if (max_ratio == 0.0) {
    throw std::invalid_argument(detail::concat("Pruner: target_prune must be unset for policy ",
                                               policy.spec().name,
                                               ", whose ratio cannot change, got ", target));
  }
  const std::uint64_t num_pruned = num_ratio_epochs(policy, schedule);
  const double most =
      max_ratio * static_cast<double>(num_pruned) / static_cast<double>(schedule.num_epochs);
  detail::require(target <= most, "Pruner", "target_prune",
                  detail::concat("at most ", most, " (a prune_ratio of ", max_ratio, " in ",
                                 num_pruned, " of ", schedule.num_epochs, " epochs)"),
                  target);
}

// True if the loss is a finite number also as a float, which is what scores are.
bool is_usable(double loss) { return std::isfinite(static_cast<float>(loss)); }

// Throws unless the batch can be booked at all.
void check_batch(std::size_t num_indices, bool has_losses, std::size_t num_losses,
                 const Scorer& scorer) {
  if (num_indices == 0) {
    throw std::invalid_argument("Pruner: indices of a batch must not be empty, got 0");
  }
  if (has_losses && num_losses != num_indices) {
    throw std::invalid_argument(detail::concat("Pruner: losses must be as many as indices (",
                                               num_indices, "), got ", num_losses));
  }
  if (!has_losses && scorer.needs_sample_losses()) {
    throw std::invalid_argument(detail::concat("Pruner: score ", scorer.spec().name,
                                               " needs one loss per sample, got the mean of ",
                                               num_indices, "; batch-loss works with the mean"));
  }
}

// Throws std::out_of_range for the first index that is out of range.
template <typename Index>
void check_range(std::span<const Index> indices, std::size_t num_samples) {
  // First all at once, which the compiler can vectorise; which one it was is looked up only if
  // needed.
  bool in_range = true;
  for (const Index index : indices) in_range &= static_cast<std::uint64_t>(index) < num_samples;
  if (in_range) return;
  for (const Index index : indices) {
    if (static_cast<std::uint64_t>(index) >= num_samples) {
      throw std::out_of_range(
          detail::concat("Pruner: index must be in [0, ", num_samples, "), got ", index));
    }
  }
}

double mean_of(std::span<const float> losses) {
  double sum = 0.0;
  for (const float loss : losses) sum += static_cast<double>(loss);
  return sum / static_cast<double>(losses.size());
}

}  // namespace

Pruner::Pruner(const PrunerOptions& options)
    : Pruner(options, make_scorer_for(options), make_policy(options.policy)) {}

Pruner::Pruner(const PrunerOptions& options, std::unique_ptr<Scorer> scorer,
               std::unique_ptr<Policy> policy)
    : options_(options), scorer_(std::move(scorer)), policy_(std::move(policy)) {
  check_num_samples(options.num_samples);
  detail::require(scorer_->num_samples() == options.num_samples, "Pruner", "scorer's num_samples",
                  detail::concat("num_samples (", options.num_samples, ")"),
                  scorer_->num_samples());
  options_.score = scorer_->spec();
  options_.policy = policy_->spec();
  options_.delta = options.delta.value_or(policy_->default_delta());
  schedule_ = {.num_epochs = options.num_epochs, .delta = *options_.delta};
  validate(schedule_);
  check_added_options(options_, *policy_, schedule_);
  if (options_.min_per_class == 0.0) options_.labels.clear();
  class_sizes_ = detail::number_classes(options_.labels);
}

Pruner::Pruner(Pruner&&) noexcept = default;
Pruner& Pruner::operator=(Pruner&&) noexcept = default;
Pruner::~Pruner() = default;

Pruner Pruner::with_score(const Spec& score) && {
  return {options_, make_scorer(score, options_.num_samples), std::move(policy_)};
}

void Pruner::check_epoch(std::uint64_t epoch) const {
  if (epoch >= schedule_.num_epochs) {
    throw std::out_of_range(detail::concat("Pruner: epoch must be below num_epochs (",
                                           schedule_.num_epochs, "), got ", epoch));
  }
}

EpochPlan Pruner::preview(std::uint64_t epoch) const {
  check_epoch(epoch);
  const bool pruning = schedule_.is_pruned(epoch);
  Selection selection;
  {
    // The scores of some scorers are computed into scratch, which goes before the plan is made.
    Array<float> scratch;
    const PolicyInput input{
        .scores = scorer_->scores(scratch), .epoch = epoch, .seed = options_.seed};
    const bool follows_target =
        options_.target_prune && (pruning || policy_->prunes_when_annealing());
    selection = follows_target ? select_for_target(input) : select(input);
  }
  return {std::move(selection), options_.seed, epoch, pruning, options_.homogeneous_batch_size};
}

Selection Pruner::select(const PolicyInput& input) const {
  Selection selection =
      schedule_.is_pruned(input.epoch) ? policy_->select(input) : policy_->anneal(input);
  if (options_.min_per_class == 0.0 && options_.homogeneous_batch_size == 0) return selection;
  std::size_t num_restored = 0;
  if (options_.min_per_class > 0.0) {
    detail::RandomStream random(input.seed, input.epoch, detail::Purpose::class_floor);
    num_restored += detail::apply_class_floor(options_.labels, class_sizes_, options_.min_per_class,
                                              selection, random);
  }
  if (options_.homogeneous_batch_size > 0) {
    detail::RandomStream random(input.seed, input.epoch, detail::Purpose::whole_batches);
    num_restored += detail::fill_batches(selection, options_.homogeneous_batch_size, random);
  }
  if (num_restored > 0) selection.report.num_restored = num_restored;
  return selection;
}

Selection Pruner::select_for_target(PolicyInput input) const {
  const auto count = [](std::uint64_t number) { return static_cast<double>(number); };
  const double all = count(options_.num_samples) * count(schedule_.num_epochs);
  const double num_pruned =
      count(options_.num_samples) * count(num_epochs_started_) - count(num_samples_planned_);
  const double epochs_left = count(num_ratio_epochs(*policy_, schedule_) - input.epoch);
  const double wanted = (*options_.target_prune * all - num_pruned) / epochs_left;
  auto choice =
      detail::choose_ratio(options_.num_samples, wanted, policy_->max_prune_ratio(), [&](double r) {
        input.prune_ratio = r;
        return select(input);
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
          : share_with(policy_->max_prune_ratio() * count(options_.num_samples), epochs_left - 1.0);
  return std::move(choice.selection);
}

const EpochPlan& Pruner::start_epoch(std::uint64_t epoch) {
  if (plan_ && plan_->epoch() == epoch) return *plan_;
  check_epoch(epoch);
  plan_.reset();  // frees its memory before the next plan takes its own
  begin_epoch(preview(epoch));
  return *plan_;
}

void Pruner::begin_epoch(EpochPlan plan) {
  plan_ = std::move(plan);
  position_ = 0;
  (void)plan_->order();  // shuffled now, not when the first batch is waited for
  ++num_epochs_started_;
  num_samples_planned_ += plan_->size();
}

bool Pruner::book(const Observation& observation) {
  const bool applied = is_usable(observation.mean_loss) &&
                       std::all_of(observation.losses.begin(), observation.losses.end(),
                                   [](float loss) { return std::isfinite(loss); }) &&
                       scorer_->observe(observation);
  ++(applied ? num_observations_ : num_skipped_observations_);
  if (recorder_) {
    recorder_->record(plan_ ? plan_->epoch() : 0, observation.indices, observation.mean_loss,
                      observation.losses);
  }
  return applied;
}

bool Pruner::is_planned(std::span<const std::uint32_t> indices) const {
  if (!plan_) return false;
  const std::span<const std::uint32_t> order = plan_->order();
  const std::less_equal<> before;
  return before(order.data(), indices.data()) &&
         before(indices.data() + indices.size(), order.data() + order.size());
}

void Pruner::record(const std::filesystem::path& folder, RecorderOptions options) {
  options.num_samples = options_.num_samples;
  if (num_steps() == 0) {
    recorder_ = std::make_unique<Recorder>(Recorder::create(folder, options));
    return;
  }
  auto recorder = std::make_unique<Recorder>(Recorder::open(folder));
  if (recorder->num_samples() != options_.num_samples) {
    throw std::runtime_error(detail::concat(folder.native(), ": is the recording of ",
                                            recorder->num_samples(), " samples, but the run has ",
                                            options_.num_samples));
  }
  recorder->rewind(num_steps());
  recorder_ = std::move(recorder);
}

std::span<const std::uint32_t> Pruner::narrow(std::span<const SampleIndex> indices) {
  check_range(indices, options_.num_samples);
  if (narrow_indices_.size() < indices.size()) narrow_indices_.resize(indices.size());
  std::transform(indices.begin(), indices.end(), narrow_indices_.begin(),
                 [](SampleIndex index) { return static_cast<std::uint32_t>(index); });
  return {narrow_indices_.data(), indices.size()};
}

bool Pruner::observe(std::span<const SampleIndex> indices, double mean_loss) {
  check_batch(indices.size(), false, 0, *scorer_);
  return book({.indices = narrow(indices), .mean_loss = mean_loss});
}

bool Pruner::observe(std::span<const SampleIndex> indices, std::span<const float> losses) {
  check_batch(indices.size(), true, losses.size(), *scorer_);
  return book({.indices = narrow(indices), .mean_loss = mean_of(losses), .losses = losses});
}

bool Pruner::observe(std::span<const std::uint32_t> indices, double mean_loss) {
  check_batch(indices.size(), false, 0, *scorer_);
  const bool planned = is_planned(indices);
  if (!planned) check_range(indices, options_.num_samples);
  return book({.indices = indices, .mean_loss = mean_loss, .distinct = planned});
}

bool Pruner::observe(std::span<const std::uint32_t> indices, std::span<const float> losses) {
  check_batch(indices.size(), true, losses.size(), *scorer_);
  const bool planned = is_planned(indices);
  if (!planned) check_range(indices, options_.num_samples);
  return book(
      {.indices = indices, .mean_loss = mean_of(losses), .losses = losses, .distinct = planned});
}

void Pruner::set_position(std::size_t position) {
  const std::size_t size = plan_ ? plan_->size() : 0;
  if (position > size) {
    throw std::out_of_range(
        detail::concat("Pruner: position must be in [0, ", size, "], got ", position));
  }
  position_ = position;
}

double Pruner::progress() const {
  if (!plan_) return 0.0;
  const double within_epoch =
      plan_->size() == 0 ? 1.0
                         : static_cast<double>(position_) / static_cast<double>(plan_->size());
  return (static_cast<double>(plan_->epoch()) + within_epoch) /
         static_cast<double>(schedule_.num_epochs);
}

double Pruner::pruned_share() const {
  if (num_epochs_started_ == 0) return 0.0;
  return 1.0 -
         static_cast<double>(num_samples_planned_) /
             (static_cast<double>(options_.num_samples) * static_cast<double>(num_epochs_started_));
}

std::vector<float> Pruner::scores() const {
  Array<float> scratch;
  const auto scores = scorer_->scores(scratch);
  return {scores.begin(), scores.end()};
}

std::size_t Pruner::num_scored() const {
  Array<float> scratch;
  return detail::score_statistics(scorer_->scores(scratch)).num_scored;
}

}  // namespace tamis
