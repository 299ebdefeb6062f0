#include "core/ranks/sharded.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "base/agreement.h"
#include "base/check.h"
#include "core/policies/sharded_view.h"
#include "core/state/state_fields.h"

namespace tamis::detail {

namespace {

// The plans are made from all scores, not from those of the part.
PrunerOptions options_of_part(PrunerOptions options, const Communicator& communicator) {
  const std::size_t num_ranks = communicator.size();
  require(options.num_samples >= num_ranks, "DistributedPruner", "num_samples",
          concat("at least one per rank (", num_ranks, ")"), options.num_samples);
  const std::uint64_t begin = part_begin(options.num_samples, num_ranks, communicator.rank());
  const std::uint64_t end = part_begin(options.num_samples, num_ranks, communicator.rank() + 1);
  options.num_samples = static_cast<std::size_t>(end - begin);
  options.homogeneous_batch_size = 0;
  options.min_per_class = 0.0;
  options.labels.clear();
  options.target_prune.reset();
  return options;
}

// `options` with the defaults that were filled in for the part.
PrunerOptions options_of_whole(PrunerOptions options, const PrunerOptions& part) {
  options.score = part.score;
  options.policy = part.policy;
  options.delta = part.delta;
  return options;
}

std::vector<std::byte> to_bytes(const OptionMap& numbers) {
  std::vector<std::byte> bytes;
  for (const auto& [name, value] : numbers) {
    const auto own = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  return bytes;
}

OptionMap from_bytes(OptionMap names, std::span<const std::byte> bytes) {
  for (auto& [name, value] : names) {
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes = bytes.subspan(sizeof value);
  }
  return names;
}

}  // namespace

ShardedRank::ShardedRank(const PrunerOptions& options,
                         const std::shared_ptr<Communicator>& communicator,
                         const DistributedOptions& distribution)
    : RankState(Pruner(options_of_part(options, *communicator)), communicator, distribution),
      options_(options_of_whole(options, pruner_.options())),
      first_(part_begin(options.num_samples, communicator->size(), communicator->rank())),
      planner_(options_, *pruner_.policy_, pruner_.schedule(), first_, pruner_.num_samples()),
      numbers_(pruner_.scorer().numbers()) {}

double ShardedRank::pruned_share() const {
  if (num_epochs_started_ == 0) return 0.0;
  return 1.0 -
         static_cast<double>(num_samples_planned_) /
             (static_cast<double>(options_.num_samples) * static_cast<double>(num_epochs_started_));
}

double ShardedRank::progress() const {
  if (!plan_) return 0.0;
  const auto size = static_cast<double>(begin_ + plan_->size());
  const double share = size == 0.0 ? 1.0 : static_cast<double>(begin_ + position_) / size;
  return (static_cast<double>(plan_->epoch()) + share) / static_cast<double>(options_.num_epochs);
}

void ShardedRank::exchange() {
  if (numbers_.empty()) return;
  const OptionMap ours = pruner_.scorer().numbers();
  std::vector<OptionMap> all;
  for (const auto& bytes : communicator_->all_gather(to_bytes(ours))) {
    all.push_back(from_bytes(ours, bytes));
  }
  numbers_ = pruner_.scorer().agree(numbers_, all);
  pruner_.scorer_->set_numbers(numbers_);
}

Selection ShardedRank::select(std::uint64_t epoch) {
  Array<float> scratch;
  const ShardedView scores(pruner_.scorer().scores(scratch), first_, options_.num_samples,
                           *communicator_);
  return planner_.select(scores, epoch, {num_epochs_started_, num_samples_planned_});
}

EpochPlan ShardedRank::make_plan(Selection selection, std::uint64_t epoch, bool pruning) const {
  return {std::move(selection), part_seed(options_.seed, first_), epoch, pruning,
          options_.homogeneous_batch_size};
}

void ShardedRank::start_epoch(std::uint64_t epoch) {
  exchange();
  const bool pruning = pruner_.schedule().is_pruned(epoch);
  plan_.reset();
  pruner_.plan_.reset();
  pruner_.begin_epoch(make_plan(select(epoch), epoch, pruning));
  view_plan(0);
  ++num_epochs_started_;
  num_samples_planned_ += plan_->num_selected();
  const SelectionReport& report = plan_->report();
  std::string fields = concat("epoch ", epoch);
  if (report.threshold) fields += "\nthreshold " + to_text(*report.threshold);
  for (const ScoreGroup& group : report.groups) {
    fields += "\ngroup that begins at " + to_text(static_cast<double>(group.low));
  }
  require_same(*communicator_, fields);
}

void ShardedRank::view_plan(std::size_t begin) {
  const EpochPlan& plan = *pruner_.plan();
  position_ = 0;
  const auto size = static_cast<std::int64_t>(plan.size());
  std::array<std::int64_t, 2> sizes = {size, pads() ? -size : size};
  const std::span<std::int64_t> all(sizes);
  communicator_->all_reduce(all.first(1));
  communicator_->all_reduce(all.last(1), Reduction::minimum);
  const auto common = static_cast<std::size_t>(pads() ? -sizes[1] : sizes[1]);
  begin_ = std::min(begin, common);
  plan_.emplace(plan,
                RankPlan::View{.begin = begin_,
                               .stride = 1,
                               .offset = 0,
                               .first_sample = first_,
                               .num_samples = options_.num_samples,
                               .num_selected = static_cast<std::uint64_t>(sizes[0])},
                common - begin_);
}

void ShardedRank::observe(std::size_t begin, std::size_t count, std::span<const float> losses) {
  book(scored_samples(*plan_, begin, count), losses);
}

void ShardedRank::observe_other(std::span<const std::uint32_t> indices,
                                std::span<const float> losses) {
  book(indices, losses);
}

bool ShardedRank::is_mid_epoch() const {
  return plan_ && begin_ + position_ > 0 && position_ < plan_->size();
}

std::unique_ptr<RankState> make_sharded(const PrunerOptions& options,
                                        const std::shared_ptr<Communicator>& communicator,
                                        const DistributedOptions& distribution) {
  return std::make_unique<ShardedRank>(options, communicator, distribution);
}

}  // namespace tamis::detail
