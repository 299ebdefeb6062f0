#include "tamis/pruner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "core/plan/planner.h"
#include "core/policies/local_view.h"
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
  planner_ =
      std::make_unique<detail::Planner>(options_, *policy_, schedule_, 0, options_.num_samples);
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
  // The scores of some scorers are computed into scratch, which goes before the order is made.
  Array<float> scratch;
  Selection selection = planner_->select(detail::LocalView(scorer_->scores(scratch)), epoch,
                                         {num_epochs_started_, num_samples_planned_});
  return {std::move(selection), options_.seed, epoch, schedule_.is_pruned(epoch),
          options_.homogeneous_batch_size};
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
