#include "core/ranks/run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/agreement.h"
#include "base/check.h"
#include "base/random/random.h"
#include "base/threads.h"
#include "core/policies/local_view.h"
#include "tamis/registry.h"

namespace tamis::detail {

namespace {

// True if the loss is a finite number also as a float, which is what scores are.
bool is_usable(double loss) { return std::isfinite(static_cast<float>(loss)); }

double mean_of(std::span<const float> losses) {
  double sum = 0.0;
  for (const float loss : losses) sum += static_cast<double>(loss);
  return sum / static_cast<double>(losses.size());
}

}  // namespace

Run::Run(RunParts parts)
    : options_(std::move(parts.options)),
      scorer_(std::move(parts.scorer)),
      policy_(std::move(parts.policy)),
      communicator_(std::move(parts.communicator)),
      first_(parts.first) {
  options_.score = scorer_->spec();
  options_.policy = policy_->spec();
  options_.delta = options_.delta.value_or(policy_->default_delta());
  schedule_ = {.num_epochs = options_.num_epochs, .delta = *options_.delta};
  validate(schedule_);
  planner_.emplace(options_, *policy_, schedule_, first_, num_kept());
}

Run::~Run() = default;

void Run::together(const std::function<void()>& action) const {
  if (communicator_) return detail::together(*communicator_, action);
  action();
}

void Run::check_epoch(std::uint64_t epoch) const {
  if (epoch >= schedule_.num_epochs) {
    throw std::out_of_range(
        concat("Pruner: epoch must be below num_epochs (", schedule_.num_epochs, "), got ", epoch));
  }
}

Selection Run::select(std::uint64_t epoch) const {
  Array<float> scratch;
  return planner_->select(LocalView(scorer_->scores(scratch)), epoch,
                          {num_epochs_started_, num_samples_planned_});
}

EpochPlan Run::make_plan(Selection selection, std::uint64_t epoch, bool pruning) const {
  return {std::move(selection), part_seed(options_.seed, first_), epoch, pruning,
          options_.homogeneous_batch_size};
}

EpochPlan Run::preview(std::uint64_t epoch) const {
  check_epoch(epoch);
  const AllowThreads threads(options_.threads);
  return view(make_plan(select(epoch), epoch, schedule_.is_pruned(epoch)));
}

const EpochPlan& Run::start_epoch(std::uint64_t epoch) {
  if (plan_ && plan_->epoch() == epoch) return *plan_;
  check_epoch(epoch);
  exchange();
  plan_.reset();  // frees its memory before the next plan takes its own
  plan_ = preview(epoch);
  (void)plan_->order();  // shuffled now, not when the first batch is waited for
  position_ = 0;
  ++num_epochs_started_;
  num_samples_planned_ += plan_->num_selected();
  check_same_plan();
  return *plan_;
}

bool Run::apply(const Observation& observation) {
  const bool applied = is_usable(observation.mean_loss) &&
                       std::all_of(observation.losses.begin(), observation.losses.end(),
                                   [](float loss) { return std::isfinite(loss); }) &&
                       scorer_->observe(observation);
  ++(applied ? num_observations_ : num_skipped_observations_);
  if (recorder_) {
    recorder_->record(plan_ ? plan_->epoch() : 0, observation.indices, observation.mean_loss,
                      observation.losses, observation.norms);
  }
  return applied;
}

bool Run::apply_losses(std::span<const std::uint32_t> indices, std::span<const float> losses,
                       std::span<const float> norms, bool distinct) {
  const std::span<const float> scored = losses.first(indices.size());
  // Norms belong to the mean of all rows, also of those that fill up.
  return apply({.indices = indices,
                .mean_loss = mean_of(norms.empty() ? scored : losses),
                .losses = scored,
                .norms = norms,
                .distinct = distinct});
}

std::span<const std::uint32_t> Run::gather_samples(const EpochPlan& plan, std::size_t begin,
                                                   std::size_t count) {
  const std::span<const std::uint32_t> order = plan.order();
  indices_.clear();
  for (std::size_t j = begin; j < begin + count && !plan.is_padding(j); ++j) {
    indices_.push_back(order[plan.slot(j)]);
  }
  return indices_;
}

// Inline, as the next one: they are a part of every step.
inline const EpochPlan& Run::batch_plan(std::size_t begin, std::size_t count) const {
  if (!plan_) throw std::runtime_error("Pruner: no epoch is running; call start_epoch first");
  if (begin > plan_->size() || count > plan_->size() - begin) {
    throw std::out_of_range(concat("Pruner: samples [", begin, ", ", begin + count,
                                   ") must be in a plan of ", plan_->size()));
  }
  return *plan_;
}

void Run::check_batch(std::size_t count, bool has_losses, bool has_norms) const {
  if (count == 0) {
    throw std::invalid_argument("Pruner: a batch must have at least one sample, got 0");
  }
  const LossKind needed = scorer_->needs();
  if (needed == LossKind::sample_losses && !has_losses) {
    throw std::invalid_argument(concat(
        "Pruner: score ", scorer_->spec().name, " needs one loss per sample, got the mean of ",
        count,
        has_norms ? " and the norms of their output gradients; output-gradient works with these"
                  : "; batch-loss works with the mean"));
  }
  if (needed == LossKind::output_gradients && !has_norms) {
    throw std::invalid_argument(
        concat("Pruner: score ", scorer_->spec().name,
               " needs the norm of the output gradient of each of the ", count,
               " samples besides the loss, got none; watch the model's outputs, or use batch-loss, "
               "which works with the mean loss alone"));
  }
}

void Run::check_observation(std::size_t count, LossKind kind) const {
  check_batch(count, kind == LossKind::sample_losses, kind == LossKind::output_gradients);
}

bool Run::observe(std::size_t begin, std::size_t count, double mean_loss,
                  std::span<const float> norms) {
  const EpochPlan& plan = batch_plan(begin, count);
  check_batch(count, false, !norms.empty());
  if (log_) {
    const auto loss = static_cast<float>(mean_loss);
    log_->add(begin, count, std::span(&loss, 1), logged_norms(norms));
    return true;
  }
  const auto indices = scored_samples(plan, begin, count);
  if (indices.empty()) return true;
  return apply(
      {.indices = indices, .mean_loss = kept_mean(mean_loss), .norms = norms, .distinct = true});
}

bool Run::observe(std::size_t begin, std::span<const float> losses, std::span<const float> norms) {
  const EpochPlan& plan = batch_plan(begin, losses.size());
  check_batch(losses.size(), true, !norms.empty());
  if (log_) {
    log_->add(begin, losses.size(), losses, logged_norms(norms));
    return true;
  }
  const auto indices = scored_samples(plan, begin, losses.size());
  if (indices.empty()) return true;
  return apply_losses(indices, losses, norms, true);
}

template <typename Index>
std::span<const std::uint32_t> Run::kept_samples(std::span<const Index> indices) {
  // First all at once, which the compiler can vectorise; which one it was is looked up only if
  // needed.
  const std::uint64_t num_kept = scorer_->num_samples();
  bool in_range = true;
  for (const Index index : indices)
    in_range &= static_cast<std::uint64_t>(index) - first_ < num_kept;
  if (!in_range) {
    const auto wrong = std::find_if(indices.begin(), indices.end(), [&](Index index) {
      return static_cast<std::uint64_t>(index) - first_ >= num_kept;
    });
    throw std::out_of_range(
        concat("Pruner: index must be in [", first_, ", ", first_ + num_kept, "), got ", *wrong));
  }
  if constexpr (std::is_same_v<Index, std::uint32_t>) {
    if (first_ == 0) return indices;
  }
  indices_.resize(indices.size());
  std::transform(indices.begin(), indices.end(), indices_.begin(), [&](Index index) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(index) - first_);
  });
  return indices_;
}

template <typename Index>
bool Run::observe(std::span<const Index> indices, double mean_loss, std::span<const float> norms) {
  check_batch(indices.size(), false, !norms.empty());
  const auto kept = kept_samples(indices);
  if (!log_) {
    return apply({.indices = kept, .mean_loss = kept_mean(mean_loss), .norms = norms});
  }
  const auto loss = static_cast<float>(mean_loss);
  log_->add_other(position_, kept, std::span(&loss, 1), logged_norms(norms));
  return true;
}

template <typename Index>
bool Run::observe(std::span<const Index> indices, std::span<const float> losses,
                  std::span<const float> norms) {
  check_batch(indices.size(), true, !norms.empty());
  if (losses.size() != indices.size()) {
    throw std::invalid_argument(concat("Pruner: losses must be as many as indices (",
                                       indices.size(), "), got ", losses.size()));
  }
  const auto kept = kept_samples(indices);
  if (!log_) return apply_losses(kept, losses, norms, false);
  log_->add_other(position_, kept, losses, logged_norms(norms));
  return true;
}

template bool Run::observe(std::span<const SampleIndex>, double, std::span<const float>);
template bool Run::observe(std::span<const SampleIndex>, std::span<const float>,
                           std::span<const float>);
template bool Run::observe(std::span<const std::uint32_t>, double, std::span<const float>);
template bool Run::observe(std::span<const std::uint32_t>, std::span<const float>,
                           std::span<const float>);

void Run::set_position(std::size_t position) {
  const std::size_t size = plan_ ? plan_->size() : 0;
  if (position > size) {
    throw std::out_of_range(concat("Pruner: position must be in [0, ", size, "], got ", position));
  }
  position_ = position;
}

double Run::share_done() const {
  const std::size_t begin = plan_->view().begin;
  const std::size_t size = begin + plan_->size();
  return size == 0 ? 1.0 : static_cast<double>(begin + position_) / static_cast<double>(size);
}

double Run::progress() const {
  if (!plan_) return 0.0;
  return (static_cast<double>(plan_->epoch()) + share_done()) /
         static_cast<double>(schedule_.num_epochs);
}

double Run::pruned_share() const {
  if (num_epochs_started_ == 0) return 0.0;
  return 1.0 -
         static_cast<double>(num_samples_planned_) /
             (static_cast<double>(options_.num_samples) * static_cast<double>(num_epochs_started_));
}

void Run::record(const std::filesystem::path& folder, RecorderOptions options) {
  together([&] {
    if (rank() != 0) return;
    options.num_samples = options_.num_samples;
    options.norm_order = scorer_->norm_order();
    if (num_steps() == 0) {
      recorder_ = std::make_unique<Recorder>(Recorder::create(folder, options));
      return;
    }
    auto recorder = std::make_unique<Recorder>(Recorder::open(folder));
    if (recorder->num_samples() != options_.num_samples) {
      throw std::runtime_error(concat(folder.native(), ": is the recording of ",
                                      recorder->num_samples(), " samples, but the run has ",
                                      options_.num_samples));
    }
    recorder->rewind(num_steps());
    recorder_ = std::move(recorder);
  });
  is_recorded_ = true;
}

Run::WholeState Run::whole_state(bool) {
  return {.state = {.numbers = scorer_->numbers(),
                    .num_observations = num_observations_,
                    .num_skipped_observations = num_skipped_observations_,
                    .num_epochs_started = num_epochs_started_,
                    .num_samples_planned = num_samples_planned_,
                    .plan = plan_,
                    .position = position_},
          .arrays = scorer_->arrays()};
}

void Run::save(bool everywhere, const std::function<void(const SafetensorsWriter&)>& use) {
  exchange();
  const bool collects = everywhere || rank() == 0;
  WholeState whole = whole_state(collects);
  std::vector<std::vector<std::byte>> attachments;
  if (communicator_) {
    attachments = communicator_->all_gather(attachment_);
    whole.state.attachments.assign(attachments.begin(), attachments.end());
  } else {
    whole.state.attachments = {attachment_};
  }
  if (std::all_of(whole.state.attachments.begin(), whole.state.attachments.end(),
                  [](const auto& bytes) { return bytes.empty(); })) {
    whole.state.attachments.clear();
  }
  together([&] {
    // A recording is on disk before a state that goes on with it.
    if (recorder_) recorder_->flush();
    if (collects) use(pack_state(options_, whole.state, whole.arrays));
  });
}

void Run::check_state(const SafetensorsReader& file, const RunState& state) const {
  const bool is_sharded = options_.layout == Layout::sharded;
  if (state.num_position_ranks > 0 && !(is_sharded && state.num_position_ranks == num_ranks())) {
    file.fail(concat("was saved in the middle of an epoch by ", state.num_position_ranks,
                     " ranks in the sharded layout; only as many can go on from there"));
  }
}

void Run::load(const std::function<SafetensorsReader()>& open) {
  const AllowThreads threads(options_.threads);
  std::optional<SafetensorsReader> file;
  RunState state;
  together([&] {
    file = open();
    state = read_state(*file, options_, num_ranks());
    check_score(*file, options_, state.numbers, *scorer_);
    check_state(*file, state);
  });
  // Nothing below fails on one rank alone.
  scorer_->set_numbers(state.numbers);
  read_arrays(*file, first_, *scorer_);
  num_observations_ = state.num_observations;
  num_skipped_observations_ = state.num_skipped_observations;
  num_epochs_started_ = state.num_epochs_started;
  num_samples_planned_ = state.num_samples_planned;
  const auto ours =
      state.attachments.empty() ? std::span<const std::byte>{} : state.attachments[rank()];
  attachment_.assign(ours.begin(), ours.end());
  if (log_) log_.emplace();
  plan_.reset();
  position_ = 0;
  take_plan(state);
  together([&] {
    if (recorder_) recorder_->rewind(num_steps());
  });
}

std::unique_ptr<Run> make_run(RunParts parts) {
  PrunerOptions& options = parts.options;
  const std::size_t num_samples = options.num_samples;
  if (!parts.communicator) {
    options.layout = Layout::replicated;
  } else if (options.layout == Layout::automatic) {
    options.layout = num_samples <= kMaxReplicated ? Layout::replicated : Layout::sharded;
  }
  std::size_t num_kept = num_samples;
  if (options.layout == Layout::sharded) {
    const std::size_t num_ranks = parts.communicator->size();
    const std::size_t rank = parts.communicator->rank();
    require(num_samples >= num_ranks, "Pruner", "num_samples",
            concat("at least one per rank (", num_ranks, ")"), num_samples);
    parts.first = part_begin(num_samples, num_ranks, rank);
    num_kept = static_cast<std::size_t>(part_begin(num_samples, num_ranks, rank + 1) - parts.first);
  }
  require(num_kept >= 1 && num_kept <= std::numeric_limits<std::uint32_t>::max(), "Pruner",
          "num_samples", "in [1, 2^32 - 1]", num_kept);
  require(options.threads >= 1, "Pruner", "threads", "at least 1", options.threads);
  if (!parts.scorer) {
    const Spec default_score{std::string(find_policy(options.policy.name).default_score)};
    parts.scorer = make_scorer(options.score.value_or(default_score), num_kept);
  }
  if (!parts.policy) parts.policy = make_policy(options.policy);
  require(parts.scorer->num_samples() == num_kept, "Pruner", "scorer's num_samples",
          concat("num_samples (", num_kept, ")"), parts.scorer->num_samples());
  if (!parts.communicator) return make_one_process(std::move(parts));
  return options.layout == Layout::sharded ? make_sharded(std::move(parts))
                                           : make_replicated(std::move(parts));
}

std::uint64_t part_begin(std::uint64_t num_samples, std::size_t num_ranks, std::size_t rank) {
  return num_samples / num_ranks * rank + std::min<std::uint64_t>(rank, num_samples % num_ranks);
}

std::size_t shared_size(std::size_t num_selected, std::size_t num_ranks, Remainder remainder) {
  return (num_selected + (remainder == Remainder::pad ? num_ranks - 1 : 0)) / num_ranks;
}

}  // namespace tamis::detail
